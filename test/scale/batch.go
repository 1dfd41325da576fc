package scale

import (
	"context"
	"strings"
	"time"

	"github.com/chandlery/chandlery/test/audit"
)

// Batch is what it took to install the operator in some namespaces at once.
type Batch struct {
	// Before is how many namespaces had the operator, and Namespaces how many got it.
	Before, Namespaces int
	// Took is from the first object of the user until all operators are available, and Span until
	// no request is sent any more.
	Took, Span time.Duration
	// Requests are those of the measured account in the span, without watches and without renewals
	// of its Lease.
	Requests []audit.Request
	// Reconciles are the passes of each controller.
	Reconciles map[string]int
	// Supervisor and APIServer are the processor time that they spent.
	Supervisor, APIServer time.Duration
	// Memory is what the supervisor has in memory of its own afterwards (RssAnon), in bytes.
	Memory int64
	// Failed are the namespaces whose installation failed for good, in order.
	Failed []string
}

// Totals are sums over the requests of a batch. Requests that follow the clock, and Events, are in
// none of them but Events.
type Totals struct {
	Reads, Writes, Conflicts, Events int
}

// Requests is the sum of reads and writes.
func (t Totals) Requests() int { return t.Reads + t.Writes }

// Totals adds up the requests of a batch.
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

// Each returns a number for each namespace of the batch.
func (b *Batch) Each(n int) float64 { return float64(n) / float64(max(1, b.Namespaces)) }

// Kind is a kind of request.
type Kind struct {
	// Verb and Resource are those of audit.Request.
	Verb, Resource string
}

func kindOf(r audit.Request) Kind { return Kind{r.Verb, r.Resource} }

func (k Kind) String() string { return k.Verb + " " + k.Resource }

// Counts counts the requests of a batch by kind.
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

// added returns by how much counts grew, without those that did not.
func added(before, after map[string]int) map[string]int {
	grown := map[string]int{}
	for name, n := range after {
		if n > before[name] {
			grown[name] = n - before[name]
		}
	}
	return grown
}

// batch has a function install the operator in some namespaces, and counts the requests and the
// processor time of the API server that this takes.
func (p *plane) batch(ctx context.Context, names []string, install func(context.Context, []string) error) (*Batch, error) {
	server, err := p.apiServer()
	if err != nil {
		return nil, err
	}
	before, err := processorTime(server)
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
	after, err := processorTime(server)
	b.APIServer = after - before
	return b, err
}
