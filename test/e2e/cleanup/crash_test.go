package cleanup_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/chandlery/chandlery/test/apiproxy"
)

// place is one call of a clean-up, whatever the namespace: the nth one that is named alike.
type place struct {
	name    string
	nth     int
	mutates bool
}

func (p place) String() string { return fmt.Sprintf("%s #%d", p.name, p.nth) }

// trial is the clean-up of the operator of a namespace, in which the supervisor dies at one
// of its calls: it is the last that the API server hears of it, or the first that it does
// not hear.
type trial struct {
	shape     shape
	namespace string
	// at is the call; nil for none.
	at *place
	// carriedOut says whether the server carries out the call.
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

// String says when the supervisor dies.
func (tr *trial) String() string {
	if tr.carriedOut {
		return fmt.Sprintf("after %s", tr.at)
	}
	return fmt.Sprintf("before %s", tr.at)
}

// concerns says whether a call is about the clean-up of the namespace's operator: it names
// the namespace, or lists what may be left anywhere, or is about a right to be borrowed.
func (tr *trial) concerns(call apiproxy.Call) bool {
	switch {
	case call.Verb == "watch" || call.Resource == "" || slices.Contains([]string{"leases", "events"}, call.Resource):
		return false
	case strings.Contains(call.Namespace+" "+call.Name+" "+call.Group, tr.namespace):
		return true
	}
	return call.Namespace == "" && (call.Verb == "list" || call.Resource == "selfsubjectreviews")
}

// elsewhere are the namespaces of other trials, in which this one's operator has copies,
// and hashed what in the names of roles stands for the name of a namespace.
var (
	elsewhere = regexp.MustCompile(`\b(undisturbed-\w+|\w+-\d{3}-(before|after))\b`)
	hashed    = regexp.MustCompile(`\b[0-9A-Za-z]{30,}\b`)
)

// neutral is what a call is named alike in all trials.
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

// seen are the calls that have been made.
func (tr *trial) seen() []place {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return slices.Clone(tr.calls)
}

// died says whether the call has been made at which the supervisor dies.
func (tr *trial) died() bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.ended
}

// trials have a death at each of some calls: before the server has heard it and, where it
// changes something, after it has been carried out.
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

// without are the calls of a clean-up that another one does not have.
func without(calls, others []place) []place {
	return slices.DeleteFunc(slices.Clone(calls), func(p place) bool {
		return slices.ContainsFunc(others, func(other place) bool { return other.name == p.name })
	})
}

// share gives one in $FAULTS of a list, other ones each time; all of it by default.
func share[T any](t *testing.T, list []T) []T {
	t.Helper()
	text := cmp.Or(os.Getenv("FAULTS"), "1")
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("$FAULTS is %q; it has to be a number from 1 on", text)
	}
	first := rand.IntN(n)
	var part []T
	for i, each := range list {
		if i%n == first {
			part = append(part, each)
		}
	}
	return part
}
