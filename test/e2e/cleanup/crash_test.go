package cleanup_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chandlery/chandlery/test/apiproxy"
	"github.com/chandlery/chandlery/test/sampling"
)

// place is one call of a clean-up, independent of the namespace: the nth call with a name.
type place struct {
	name    string
	nth     int
	mutates bool
}

func (p place) String() string { return fmt.Sprintf("%s #%d", p.name, p.nth) }

// trial is the clean-up of the operator of a namespace, in which the supervisor dies at one of its
// calls. The API server receives that call last, or does not receive it.
type trial struct {
	shape     shape
	namespace string
	// at is the call; nil for none.
	at *place
	// carriedOut is set if the server carries out the call.
	carriedOut bool

	mu     sync.Mutex
	counts map[string]int
	calls  []place
	dead   chan struct{}
	ended  bool
}

func newTrial(s shape, namespace string, at *place, carriedOut bool) *trial {
	return &trial{shape: s, namespace: namespace, at: at, carriedOut: carriedOut, counts: map[string]int{}, dead: make(chan struct{})}
}

// String returns a description of the moment at which the supervisor dies.
func (tr *trial) String() string {
	if tr.carriedOut {
		return fmt.Sprintf("after %s", tr.at)
	}
	return fmt.Sprintf("before %s", tr.at)
}

// concerns reports whether a call belongs to the clean-up of the namespace's operator. Such a call
// names the namespace, lists leftovers in all namespaces, or concerns a temporary grant.
func (tr *trial) concerns(call apiproxy.Call) bool {
	switch {
	case call.Verb == "watch" || call.Resource == "" || slices.Contains([]string{"leases", "events"}, call.Resource):
		return false
	case strings.Contains(call.Namespace+" "+call.Name+" "+call.Group, tr.namespace):
		return true
	}
	return call.Namespace == "" && (call.Verb == "list" || call.Resource == "selfsubjectreviews")
}

// elsewhere matches the namespaces of other trials, in which this one's operator has copies, and those
// that their operators watch. hashed matches the hashes of namespaces in the names of roles.
var (
	elsewhere = regexp.MustCompile(`\b(undisturbed-\w+|\w+-\d{3}-(before|after))(` + watchedSuffix + `)?\b`)
	hashed    = regexp.MustCompile(`\b[0-9A-Za-z]{30,}\b`)
)

// neutral returns a name for a call that is the same in all trials.
func (tr *trial) neutral(call string) string {
	call = strings.ReplaceAll(call, tr.namespace, "NS")
	return hashed.ReplaceAllString(elsewhere.ReplaceAllString(call, "OTHER"), "HASH")
}

func (tr *trial) judge(call apiproxy.Call) apiproxy.Fault {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.ended {
		return apiproxy.Fault{Cut: apiproxy.CutBefore}
	}
	if !tr.concerns(call) {
		return apiproxy.Fault{}
	}
	name := tr.neutral(call.String())
	tr.counts[name]++
	p := place{name, tr.counts[name], call.Mutates()}
	tr.calls = append(tr.calls, p)
	if tr.at == nil || p != *tr.at {
		return apiproxy.Fault{}
	}
	tr.ended = true
	close(tr.dead)
	if tr.carriedOut {
		return apiproxy.Fault{Cut: apiproxy.CutAfter}
	}
	return apiproxy.Fault{Cut: apiproxy.CutBefore}
}

// seen returns the calls so far.
func (tr *trial) seen() []place {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return slices.Clone(tr.calls)
}

// died reports whether the call has been made at which the supervisor dies.
func (tr *trial) died() bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.ended
}

// trials returns trials with a death at each of some calls: before the server receives it and, if
// it changes something, also after it was carried out.
func trials(s shape, calls []place) []*trial {
	var list []*trial
	for i := range calls {
		list = append(list, newTrial(s, fmt.Sprintf("%s-%03d-before", s, i+1), &calls[i], false))
		if calls[i].mutates {
			list = append(list, newTrial(s, fmt.Sprintf("%s-%03d-after", s, i+1), &calls[i], true))
		}
	}
	return list
}

// without returns the calls of a clean-up that another one lacks.
func without(calls, others []place) []place {
	return slices.DeleteFunc(slices.Clone(calls), func(p place) bool {
		return slices.ContainsFunc(others, func(other place) bool { return other.name == p.name })
	})
}

// share returns one in $FAULTS elements of a list, the same ones each time; all of it by default.
func share[T any](t *testing.T, list []T) []T {
	t.Helper()
	n := sampling.Number(t, "FAULTS", 1, 1)
	var part []T
	for i, each := range list {
		if i%n == n/2 {
			part = append(part, each)
		}
	}
	return part
}
