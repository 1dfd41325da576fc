package sat_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/chandlery/chandlery/supervisor/resolver/sat"
)

// enough steps for every problem of the oracle's size.
const enough = 10_000

// anyProblem draws a problem of up to eight variables with all kinds of
// constraints.
func anyProblem(t *rapid.T) sat.Problem {
	variables := rapid.IntRange(1, 8).Draw(t, "variables")
	ids := rapid.Custom(func(t *rapid.T) sat.ID { return sat.ID(rapid.IntRange(0, variables-1).Draw(t, "id")) })
	constraint := rapid.Custom(func(t *rapid.T) sat.Constraint {
		return sat.Constraint{
			Kind: rapid.SampledFrom([]sat.Kind{
				sat.Mandatory, sat.Prohibited, sat.Dependency, sat.Dependency, sat.Dependency, sat.Conflict, sat.AtMost,
			}).Draw(t, "kind"),
			Variable: ids.Draw(t, "variable"),
			Others:   rapid.SliceOfN(ids, 0, 9).Draw(t, "others"),
			Limit:    rapid.IntRange(0, 5).Draw(t, "limit"),
		}
	})
	return sat.Problem{Variables: variables, Constraints: rapid.SliceOfN(constraint, 0, 14).Draw(t, "constraints")}
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkAgainstOracle solves a problem and compares with what the oracle says.
func checkAgainstOracle(t failer, p sat.Problem) {
	t.Helper()
	got, err := sat.Solve(ctx, p, enough)
	want, ok := best(p)
	if ok {
		if err != nil {
			t.Fatalf("%+v: %v, want %v", p, err, want.ids())
		}
		if !slices.Equal(got, want.ids()) {
			t.Fatalf("%+v: got %v, want %v", p, got, want.ids())
		}
		return
	}
	var unsatisfiable *sat.UnsatisfiableError
	if !errors.As(err, &unsatisfiable) {
		t.Fatalf("%+v: got %v and error %v, want that it is unsatisfiable", p, got, err)
	}
	if because := blame(p); !slices.Equal(unsatisfiable.Constraints, because) {
		t.Fatalf("%+v: blames %v, want %v", p, unsatisfiable.Constraints, because)
	}
}

func TestSolutionsAreTheOraclesOnRandomProblems(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkAgainstOracle(t, anyProblem(t)) })
}
