package cleanup_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
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

// crash is the death of a supervisor at one of the calls that it makes to clean up after
// the operator of a namespace: the call is the last that the API server hears of it, or the
// first that it does not hear.
type crash struct {
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

func newCrash(namespace string, at *place, carriedOut bool) *crash {
	return &crash{namespace: namespace, at: at, carriedOut: carriedOut, counts: map[string]int{}, dead: make(chan struct{})}
}

// String says when the supervisor dies.
func (c *crash) String() string {
	if c.carriedOut {
		return fmt.Sprintf("after %s", c.at)
	}
	return fmt.Sprintf("before %s", c.at)
}

// concerns says whether a call is about the clean-up of the namespace's operator: it names
// the namespace, or lists what may be left anywhere, or is about a right to be borrowed.
func (c *crash) concerns(call apiproxy.Call) bool {
	switch {
	case call.Verb == "watch" || call.Resource == "" || slices.Contains([]string{"leases", "events"}, call.Resource):
		return false
	case strings.Contains(call.Namespace+" "+call.Name+" "+call.Group, c.namespace):
		return true
	}
	return call.Namespace == "" && (call.Verb == "list" || call.Resource == "selfsubjectreviews")
}

func (c *crash) judge(call apiproxy.Call) apiproxy.Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return apiproxy.Fault{Cut: apiproxy.CutBefore}
	}
	if !c.concerns(call) {
		return apiproxy.Fault{}
	}
	name := strings.ReplaceAll(call.String(), c.namespace, "NS")
	c.counts[name]++
	p := place{name, c.counts[name], call.Mutates()}
	c.calls = append(c.calls, p)
	if c.at == nil || p != *c.at {
		return apiproxy.Fault{}
	}
	c.ended = true
	close(c.dead)
	if c.carriedOut {
		return apiproxy.Fault{Cut: apiproxy.CutAfter}
	}
	return apiproxy.Fault{Cut: apiproxy.CutBefore}
}

// seen are the calls that have been made.
func (c *crash) seen() []place {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

// died says whether the call has been made at which the supervisor dies.
func (c *crash) died() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// crashes are the deaths at each of some calls: before the server has heard it and, where
// it changes something, after it has been carried out.
func crashes(calls []place) []*crash {
	var list []*crash
	for i := range calls {
		list = append(list, newCrash(fmt.Sprintf("c%03d-before", i+1), &calls[i], false))
		if calls[i].mutates {
			list = append(list, newCrash(fmt.Sprintf("c%03d-after", i+1), &calls[i], true))
		}
	}
	return list
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
