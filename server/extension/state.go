package extension

import (
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/index"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
)

// State is the state of the served content and of the last failed load.
type State struct {
	// Info describes the content that is served.
	Info index.Info
	// LoadedAt is the time at which the content was first served; zero if there is none.
	LoadedAt time.Time
	// Failure is the error of the last attempt to load content; nil if it succeeded.
	Failure error
	// FailedAt is the time at which that attempt ended.
	FailedAt time.Time
}

// Content provides the state of the served content.
type Content interface {
	// State returns the current state.
	State() State
	// Changed returns a channel that is closed at the next change of the state. Call it before
	// State so as not to miss a change.
	Changed() <-chan struct{}
}

// Announcer is a [Content] whose state its methods set. It is safe for concurrent use. The zero
// value has no content.
type Announcer struct {
	mu      sync.Mutex
	state   State
	changed chan struct{}
}

// Loaded records that a content is now served.
func (a *Announcer) Loaded(info index.Info, at time.Time) {
	a.set(func(s *State) { *s = State{Info: info, LoadedAt: at} })
}

// Failed records a failed attempt to load content. The previous content is still served.
func (a *Announcer) Failed(err error, at time.Time) {
	a.set(func(s *State) { s.Failure, s.FailedAt = err, at })
}

func (a *Announcer) set(change func(*State)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(&a.state)
	if a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
}

// State implements [Content].
func (a *Announcer) State() State {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state
}

// Changed implements [Content].
func (a *Announcer) Changed() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.changed == nil {
		a.changed = make(chan struct{})
	}
	return a.changed
}

// content returns the content for an answer, or nil if there is none.
func (s State) content() *registryv1.Content {
	if s.LoadedAt.IsZero() {
		return nil
	}
	return &registryv1.Content{
		Digest: s.Info.ContentDigest, SourceDigest: s.Info.SourceDigest, LoadedAt: timestamppb.New(s.LoadedAt),
		IndexFormat: count(s.Info.Format), IndexBytes: s.Info.FileBytes,
		Packages: count(s.Info.Packages), Channels: count(s.Info.Channels),
		Bundles: count(s.Info.Bundles), Entries: count(s.Info.Entries),
	}
}

// failure returns the failure for an answer, or nil if there is none.
func (s State) failure() *registryv1.LoadFailure {
	if s.Failure == nil {
		return nil
	}
	problems := bundles.AsProblems(s.Failure)
	out := &registryv1.LoadFailure{FailedAt: timestamppb.New(s.FailedAt), TotalProblems: count(len(problems))}
	for _, p := range problems[:min(len(problems), maxListed)] {
		out.Problems = append(out.Problems, &registryv1.Problem{
			File: clip(p.File, maxProblemText), Package: clip(p.Package, maxProblemText),
			Channel: clip(p.Channel, maxProblemText), Bundle: clip(p.Bundle, maxProblemText),
			Message: clip(p.Message, maxProblemText), Remedy: clip(p.Remedy, maxProblemText),
		})
	}
	return out
}
