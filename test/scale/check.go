package scale

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/test/audit"
)

// Exceeded returns a sentence for each exceeded limit of a batch. Conflicts have their own limit
// and count for no row.
func Exceeded(b *Batch) []string {
	var found []string
	t := b.Totals()
	for _, limit := range []struct {
		what string
		n    int
		max  float64
	}{
		{"requests", t.Requests(), MaxRequests},
		{"reads", t.Reads, MaxReads},
		{"conflicts", t.Conflicts, float64(MaxConflicts) / ConflictsPer},
	} {
		if allowed := allowance(limit.max, b.Namespaces); limit.n > allowed {
			found = append(found, fmt.Sprintf("%d %s for %d installations, want at most %d", limit.n, limit.what, b.Namespaces, allowed))
		}
	}
	counts := map[Kind]int{}
	for _, r := range b.Requests {
		if !isConflict(r) {
			counts[kindOf(r)]++
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(counts), compareKinds) {
		row, known := find(k)
		if !known {
			found = append(found, fmt.Sprintf("%d %s for %d installations, which the budget does not have", counts[k], k, b.Namespaces))
			continue
		}
		if allowed := row.allowed(b); counts[k] > allowed {
			found = append(found, fmt.Sprintf("%d %s for %d installations, want at most %d", counts[k], k, b.Namespaces, allowed))
		}
	}
	return found
}

// isConflict reports whether a write conflicted with a newer object or another field manager. The
// creation of an existing object has the same status but counts as a creation.
func isConflict(r audit.Request) bool { return r.Code == http.StatusConflict && r.Verb != "create" }

// allowance returns the allowed number for some namespaces.
func allowance(each float64, namespaces int) int { return int(math.Ceil(each * float64(namespaces))) }

// allowed returns the allowed number of requests of the row's kind in a batch.
func (r Row) allowed(b *Batch) int {
	n := allowance(r.Each, b.Namespaces)
	if b.Before == 0 {
		n += r.First
	}
	if r.Minute > 0 {
		n += 1 + int(math.Ceil(r.Minute*b.Span.Minutes()))
	}
	return n
}

// figure is a number that batches are compared by.
type figure struct {
	name string
	of   func(*Batch) int
	// pace is the allowed additional number for each second that an installation takes longer.
	pace float64
}

// paced returns the controllers that collect events for a time, with the number of an
// installation's reconciliations for each second. An installation on a loaded machine takes longer
// and has more of them.
func paced() map[string]float64 {
	return map[string]float64{
		"operator":  0.2,  // one write in five seconds
		"olmconfig": 0.05, // one reconciliation in two seconds for all concurrent installations
	}
}

// Grown returns the figures of an installation that have grown by more than MaxGrowth between one
// batch and all of some later ones: requests, and the reconciliations of each controller with at
// least one. Load of the machine only adds reconciliations, so the smallest value of the later
// batches counts.
func Grown(early *Batch, late ...*Batch) []string {
	figures := []figure{{name: "requests", of: func(b *Batch) int { return b.Totals().Requests() }}}
	for _, name := range controllers(late) {
		figures = append(figures, figure{name: "reconciles of " + name, of: func(b *Batch) int { return b.Reconciles[name] }, pace: paced()[name]})
	}
	var found []string
	for _, f := range figures {
		least := slices.MinFunc(late, func(a, b *Batch) int { return cmp.Compare(f.beyond(early, a), f.beyond(early, b)) })
		if before, after := early.Each(f.of(early)), least.Each(f.of(least)); after >= 1 && f.beyond(early, least) > 0 {
			found = append(found, fmt.Sprintf("%.1f %s for one installation beside %d others, %.1f beside %d: want at most %.1f times as many",
				before, f.name, early.Before, after, least.Before, MaxGrowth))
		}
	}
	return found
}

// beyond returns how much a figure of one installation exceeds its allowed growth.
func (f figure) beyond(early, late *Batch) float64 {
	longer := max(0, late.Took-early.Took).Seconds()
	return late.Each(f.of(late)) - early.Each(f.of(early))*MaxGrowth - f.pace*longer
}

// controllers returns the names of all controllers with reconciliations, sorted.
func controllers(batches []*Batch) []string {
	names := map[string]bool{}
	for _, b := range batches {
		for name := range b.Reconciles {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func compareKinds(a, b Kind) int {
	return cmp.Or(strings.Compare(a.Resource, b.Resource), strings.Compare(a.Verb, b.Verb))
}
