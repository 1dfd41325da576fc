package sat_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/chandlery/chandlery/supervisor/resolution/sat"
)

// packages returns a problem like those of operators. One version of each package may be taken, newest first;
// of the first packages, a version must be taken. Each version needs one of the versions of two later packages.
// If the newest one is out of bounds, every version of the first package excludes it.
func packages(packages, versions, wanted int, bounds bool) sat.Problem {
	p := sat.Problem{Variables: packages*versions + wanted}
	versionsOf := func(n int) []sat.ID {
		ids := make([]sat.ID, versions)
		for v := range ids {
			ids[v] = sat.ID(n*versions + v)
		}
		return ids
	}
	for w := range wanted {
		root := sat.ID(packages*versions + w)
		p.Constraints = append(p.Constraints,
			sat.Constraint{Kind: sat.Mandatory, Variable: root},
			sat.Constraint{Kind: sat.Dependency, Variable: root, Others: versionsOf(w)})
	}
	for n := range packages {
		p.Constraints = append(p.Constraints, sat.Constraint{Kind: sat.AtMost, Limit: 1, Others: versionsOf(n)})
		for _, id := range versionsOf(n) {
			for _, needed := range []int{2*n + wanted, 2*n + wanted + 1} {
				if needed < packages {
					p.Constraints = append(p.Constraints,
						sat.Constraint{Kind: sat.Dependency, Variable: id, Others: versionsOf(needed)})
				}
			}
			if n == 0 && bounds {
				for last := 1; last < packages; last++ {
					p.Constraints = append(p.Constraints,
						sat.Constraint{Kind: sat.Conflict, Variable: id, Others: versionsOf(last)[:1]})
				}
			}
		}
	}
	return p
}

// impossible returns such a problem in which no version of the first package may be taken.
func impossible(n, versions, wanted int) sat.Problem {
	p := packages(n, versions, wanted, false)
	for v := range versions {
		p.Constraints = append(p.Constraints, sat.Constraint{Kind: sat.Prohibited, Variable: sat.ID(v)})
	}
	return p
}

func BenchmarkSolve(b *testing.B) {
	for _, c := range []struct{ packages, versions, wanted int }{{3, 3, 1}, {20, 10, 3}, {100, 30, 20}, {300, 30, 100}, {300, 50, 300}} {
		for _, bounds := range []bool{false, true} {
			p := packages(c.packages, c.versions, c.wanted, bounds)
			b.Run(fmt.Sprintf("variables=%d,bounds=%t", p.Variables, bounds), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := sat.Solve(b.Context(), p, 100_000); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkExplain(b *testing.B) {
	for _, c := range []struct{ packages, versions, wanted int }{{3, 3, 1}, {100, 30, 20}, {300, 50, 300}} {
		p := impossible(c.packages, c.versions, c.wanted)
		b.Run(fmt.Sprintf("variables=%d", p.Variables), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := sat.Solve(b.Context(), p, 100_000)
				if _, ok := errors.AsType[*sat.UnsatisfiableError](err); !ok {
					b.Fatal(err)
				}
			}
		})
	}
}
