package extension

import (
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/index"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
)

// State is what is served, and what is wrong with what is not.
type State struct {
	// Info describes the content that is served.
	Info index.Info
	// LoadedAt is when it began to be served; zero while there is none.
	LoadedAt time.Time
	// Failure is why the last attempt to load a content came to nothing; nil
	// while all is well.
	Failure error
	// FailedAt is when that attempt ended.
	FailedAt time.Time
}

// Content tells about the content that is served.
type Content interface {
	// State returns the state as it is now.
	State() State
	// Changed returns a channel that is closed at the next change of the state.
	// Ask for it before the state, and no change goes unnoticed.
	Changed() <-chan struct{}
}

// Announcer is a [Content] that is told what happens. Any number of goroutines
// may use it; the zero value has no content yet.
type Announcer struct {
	mu      sync.Mutex
	state   State
	changed chan struct{}
}

// Loaded notes that a content is served from now on.
func (a *Announcer) Loaded(info index.Info, at time.Time) {
	a.set(func(s *State) { *s = State{Info: info, LoadedAt: at} })
}

// Failed notes that an attempt to load a content has failed. What was served is
// served still.
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

// content returns the content for an answer, or nil while there is none.
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

// failure returns the failure for an answer, or nil while all is well.
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
