package scale

import (
	"context"
	"strings"
	"time"

	"github.com/chandlery/chandlery/test/audit"
)

// Batch is the cost of installing the operator in some namespaces at once.
type Batch struct {
	// Before is the number of namespaces that had the operator. Namespaces is the number that got it.
	Before, Namespaces int
	// Took is the time from the user's first object until all operators are available. Span is the
	// time until no more requests are sent.
	Took, Span time.Duration
	// Requests are the requests of the measured account in Span, without watches and renewals of its Lease.
	Requests []audit.Request
	// Reconciles are the numbers of reconciliations by controller.
	Reconciles map[string]int
	// Supervisor, APIServer and ControllerManager are the processor times of the supervisor,
	// kube-apiserver and kube-controller-manager.
	Supervisor, APIServer, ControllerManager time.Duration
	// Memory is the supervisor's anonymous memory afterwards (RssAnon), Resident all that is resident, such as
	// pages of the program's file (VmRSS). Both are in bytes.
	Memory, Resident int64
	// Failed are the namespaces whose installation failed permanently, sorted.
	Failed []string
}

// Totals are sums over the requests of a batch. Periodic requests and Events count only in Events.
type Totals struct {
	Reads, Writes, Conflicts, Events int
}

// Requests returns the sum of reads and writes.
func (t Totals) Requests() int { return t.Reads + t.Writes }

// Totals returns the sums over the requests of a batch.
func (b *Batch) Totals() Totals {
	var t Totals
	for _, r := range b.Requests {
		row, known := find(kindOf(r))
		switch {
		case known && row.Minute > 0:
		case isEvent(r):
			t.Events++
		case r.Reads():
			t.Reads++
		default:
			t.Writes++
		}
		if isConflict(r) {
			t.Conflicts++
		}
	}
	return t
}

// Reconciliations returns the sum of the reconciliations of all controllers, without periodic ones.
func (b *Batch) Reconciliations() int {
	sum := 0
	for name, n := range b.Reconciles {
		if row, _ := find(Kind{reconcile, name}); row.Minute == 0 {
			sum += n
		}
	}
	return sum
}

// Each returns a number divided by the number of the batch's namespaces.
func (b *Batch) Each(n int) float64 { return float64(n) / float64(max(1, b.Namespaces)) }

// Kind is a kind of request.
type Kind struct {
	// Verb and Resource are as in audit.Request.
	Verb, Resource string
}

func kindOf(r audit.Request) Kind { return Kind{r.Verb, r.Resource} }

func (k Kind) String() string { return k.Verb + " " + k.Resource }

// Counts returns the numbers of requests of a batch by kind.
func (b *Batch) Counts() map[Kind]int {
	counts := map[Kind]int{}
	for _, r := range b.Requests {
		counts[kindOf(r)]++
	}
	return counts
}

func isEvent(r audit.Request) bool {
	return r.Resource == "events" || strings.HasPrefix(r.Resource, "events.")
}

// added returns the growth of counts, without those that did not grow.
func added(before, after map[string]int) map[string]int {
	grown := map[string]int{}
	for name, n := range after {
		if n > before[name] {
			grown[name] = n - before[name]
		}
	}
	return grown
}

// batch installs the operator in some namespaces with a function, and counts the requests and the
// processor time of components.
func (p *plane) batch(ctx context.Context, names []string, install func(context.Context, []string) error) (*Batch, error) {
	before, err := p.componentTimes()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := install(ctx, names); err != nil {
		return nil, err
	}
	b := &Batch{Namespaces: len(names), Took: time.Since(began)}
	if b.Requests, err = p.idle(ctx); err != nil {
		return nil, err
	}
	b.Span = time.Since(began)
	after, err := p.componentTimes()
	b.APIServer, b.ControllerManager = after.apiServer-before.apiServer, after.controllerManager-before.controllerManager
	return b, err
}
