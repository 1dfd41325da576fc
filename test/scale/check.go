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

// Exceeded returns a sentence for each exceeded limit of a batch. Conflicts count for no row: TooManyConflicts has their
// limit.
func Exceeded(b *Batch) []string {
	var found []string
	t := b.Totals()
	first := 0
	if b.Before == 0 {
		first = additional(Budget())
	}
	for _, limit := range []struct {
		what string
		n    int
		max  float64
	}{
		{"requests", t.Requests(), MaxRequests},
		{"reads", t.Reads, MaxReads},
	} {
		if allowed := allowance(limit.max, b.Namespaces) + first; limit.n > allowed {
			found = append(found, fmt.Sprintf("%d %s for %d installations, want at most %d", limit.n, limit.what, b.Namespaces, allowed))
		}
	}
	counts := map[Kind]int{}
	for _, r := range b.Requests {
		if !isConflict(r) {
			counts[kindOf(r)]++
		}
	}
	for name, n := range b.Reconciles {
		counts[Kind{reconcile, name}] = n
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

// TooManyConflicts returns a sentence if batches have more conflicts than MaxConflicts allows for all of their
// installations, with the number for each kind of request; empty otherwise. A few installations may have more than their
// share.
func TooManyConflicts(batches ...*Batch) string {
	var installations, conflicts int
	counts := map[string]int{}
	for _, b := range batches {
		installations += b.Namespaces
		for _, r := range b.Requests {
			if isConflict(r) {
				conflicts++
				counts[kindOf(r).String()]++
			}
		}
	}
	allowed := allowance(float64(MaxConflicts)/ConflictsPer, installations)
	if conflicts <= allowed {
		return ""
	}
	return fmt.Sprintf("%d conflicts for %d installations, want at most %d: %v", conflicts, installations, allowed, counts)
}

// isConflict reports whether a write conflicted with a newer object or another field manager. The
// creation of an existing object has the same status but counts as a creation.
func isConflict(r audit.Request) bool { return r.Code == http.StatusConflict && r.Verb != "create" }

// allowance returns the allowed number for some namespaces.
func allowance(each float64, namespaces int) int { return int(math.Ceil(each * float64(namespaces))) }

// additional returns the number of requests that a first batch may have in addition.
func additional(rows []Row) int {
	n := 0
	for _, r := range rows {
		n += r.First
	}
	return n
}

// allowed returns the allowed number of the row's kind in a batch. Only periodic ones grow with its time.
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

// Grown returns the figures of an installation that have grown by more than MaxGrowth between one
// batch and later ones: requests, and reconciliations of all controllers. Periodic ones do not count.
//
// The median of the later batches counts. Load of the machine may add to one of them, whereas a cost
// that depends on the other namespaces is in all.
func Grown(early *Batch, late ...*Batch) []string {
	var found []string
	for _, figure := range []struct {
		name string
		of   func(*Batch) int
	}{
		{"requests", func(b *Batch) int { return b.Totals().Requests() }},
		{"reconciles", (*Batch).Reconciliations},
	} {
		each := func(b *Batch) float64 { return b.Each(figure.of(b)) }
		later := slices.SortedFunc(slices.Values(late), func(a, b *Batch) int { return cmp.Compare(each(a), each(b)) })
		median := later[len(later)/2]
		if before, after := each(early), each(median); after > before*MaxGrowth {
			found = append(found, fmt.Sprintf("%.1f %s for one installation beside %d others, %.1f beside %d: want at most %.1f times as many",
				before, figure.name, early.Before, after, median.Before, MaxGrowth))
		}
	}
	return found
}

func compareKinds(a, b Kind) int {
	return cmp.Or(strings.Compare(a.Resource, b.Resource), strings.Compare(a.Verb, b.Verb))
}
