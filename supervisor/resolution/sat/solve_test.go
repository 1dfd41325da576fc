package sat_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chandlery/chandlery/supervisor/resolution/sat"
)

// enough is a sufficient number of steps for every problem of the oracle's size.
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

// checkAgainstOracle solves a problem and compares the result with that of the oracle.
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
	unsatisfiable, ok := errors.AsType[*sat.UnsatisfiableError](err)
	if !ok {
		t.Fatalf("%+v: got %v and error %v, want that it is unsatisfiable", p, got, err)
	}
	if because := blame(p); !slices.Equal(unsatisfiable.Constraints, because) {
		t.Fatalf("%+v: blames %v, want %v", p, unsatisfiable.Constraints, because)
	}
}

func TestSolutionsAreTheOraclesOnRandomProblems(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkAgainstOracle(t, anyProblem(t)) })
}

// kinds returns the constraints of the systematic family over a number of variables: every kind for every
// variable, with every ordered pair and the empty list as others.
func kinds(variables int) []sat.Constraint {
	var all []sat.Constraint
	for v := range sat.ID(variables) {
		all = append(all,
			sat.Constraint{Kind: sat.Mandatory, Variable: v},
			sat.Constraint{Kind: sat.Prohibited, Variable: v},
			sat.Constraint{Kind: sat.Dependency, Variable: v})
		for a := range sat.ID(variables) {
			for b := range sat.ID(variables) {
				all = append(all, sat.Constraint{Kind: sat.Dependency, Variable: v, Others: []sat.ID{a, b}})
			}
			all = append(all, sat.Constraint{Kind: sat.Conflict, Variable: v, Others: []sat.ID{a}})
		}
	}
	everything := make([]sat.ID, variables)
	for v := range everything {
		everything[v] = sat.ID(v)
	}
	for limit := range variables {
		all = append(all, sat.Constraint{Kind: sat.AtMost, Others: everything, Limit: limit})
	}
	return all
}

// TestSolutionsAreTheOraclesOnAllSmallProblems solves every problem of up to three constraints over three
// variables, one of which is mandatory, and of two over four.
func TestSolutionsAreTheOraclesOnAllSmallProblems(t *testing.T) {
	count := 0
	for _, size := range []struct{ variables, constraints int }{{1, 4}, {2, 3}, {3, 3}, {4, 2}} {
		all := kinds(size.variables)
		var extend func(p sat.Problem, more int)
		extend = func(p sat.Problem, more int) {
			count++
			checkAgainstOracle(t, p)
			if more == 0 {
				return
			}
			for _, c := range all {
				extend(sat.Problem{Variables: p.Variables, Constraints: append(slices.Clip(p.Constraints), c)}, more-1)
			}
		}
		first := []sat.Constraint{{Kind: sat.Mandatory}}
		extend(sat.Problem{Variables: size.variables, Constraints: first}, size.constraints)
	}
	t.Logf("%d problems", count)
}

// chained draws a problem in which much can be reached: every variable needs one of two to four others. The
// best walk thus reaches variables that are not needed.
func chained(t *rapid.T) sat.Problem {
	p := sat.Problem{Variables: 8, Constraints: []sat.Constraint{{Kind: sat.Mandatory}, {Kind: sat.Mandatory, Variable: 1}}}
	for v := range sat.ID(8) {
		for range rapid.IntRange(0, 3).Draw(t, "needs") {
			others := rapid.SliceOfN(rapid.IntRange(0, 7), 2, 4).Draw(t, "others")
			c := sat.Constraint{Kind: sat.Dependency, Variable: v}
			for _, other := range others {
				c.Others = append(c.Others, sat.ID(other))
			}
			p.Constraints = append(p.Constraints, c)
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "conflicts") {
		p.Constraints = append(p.Constraints, sat.Constraint{
			Kind:     sat.Conflict,
			Variable: sat.ID(rapid.IntRange(2, 7).Draw(t, "one")),
			Others:   []sat.ID{sat.ID(rapid.IntRange(2, 7).Draw(t, "other"))},
		})
	}
	return p
}

func TestSolutionsAreTheOraclesWhereMuchCanBeReached(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkAgainstOracle(t, chained(t)) })
}

func TestSolutionMeetsAllAndNothingInItIsSuperfluous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyProblem(t)
		ids, err := sat.Solve(ctx, p, enough)
		if err != nil {
			return
		}
		taken := setOf(ids)
		if !taken.meetsAll(p.Constraints) {
			t.Fatalf("%+v: %v is no solution", p, ids)
		}
		held := walk(p, taken).roots
		for part := range taken {
			if part&^taken == 0 && part&held == held && part.meetsAll(p.Constraints) {
				t.Fatalf("%+v: of %v, %v suffices", p, ids, part.ids())
			}
		}
	})
}

func TestSolutionDoesNotDependOnTheOrderOfWhatOnlyForbids(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyProblem(t)
		var forbidding, demanding []sat.Constraint
		for _, c := range p.Constraints {
			if c.Kind == sat.Mandatory || c.Kind == sat.Dependency {
				demanding = append(demanding, c)
				continue
			}
			c.Others = rapid.Permutation(c.Others).Draw(t, "others")
			forbidding = append(forbidding, c)
		}
		shuffled := sat.Problem{Variables: p.Variables}
		for _, c := range rapid.Permutation(forbidding).Draw(t, "forbidding") {
			for len(demanding) > 0 && rapid.Bool().Draw(t, "demanding first") {
				shuffled.Constraints = append(shuffled.Constraints, demanding[0])
				demanding = demanding[1:]
			}
			shuffled.Constraints = append(shuffled.Constraints, c)
		}
		shuffled.Constraints = append(shuffled.Constraints, demanding...)
		ids, err := sat.Solve(ctx, p, enough)
		again, errAgain := sat.Solve(ctx, shuffled, enough)
		if !slices.Equal(ids, again) || (err == nil) != (errAgain == nil) {
			t.Fatalf("%+v: got %v (%v)\n%+v: got %v (%v)", p, ids, err, shuffled, again, errAgain)
		}
	})
}

// larger draws a problem of fifty variables, which nearly always requires the solver.
func larger(t *rapid.T) sat.Problem {
	const variables = 50
	id := func() sat.ID { return sat.ID(rapid.IntRange(0, variables-1).Draw(t, "id")) }
	several := func(most int) []sat.ID {
		ids := make([]sat.ID, rapid.IntRange(1, most).Draw(t, "several"))
		for i := range ids {
			ids[i] = id()
		}
		return ids
	}
	p := sat.Problem{Variables: variables}
	for range rapid.IntRange(1, 4).Draw(t, "mandatory") {
		p.Constraints = append(p.Constraints, sat.Constraint{Kind: sat.Mandatory, Variable: id()})
	}
	for range rapid.IntRange(40, 150).Draw(t, "dependencies") {
		p.Constraints = append(p.Constraints, sat.Constraint{Kind: sat.Dependency, Variable: id(), Others: several(4)})
	}
	for range rapid.IntRange(0, 60).Draw(t, "conflicts") {
		p.Constraints = append(p.Constraints, sat.Constraint{Kind: sat.Conflict, Variable: id(), Others: several(2)})
	}
	for range rapid.IntRange(0, 6).Draw(t, "limits") {
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		p.Constraints = append(p.Constraints, sat.Constraint{Kind: sat.AtMost, Others: several(12), Limit: limit})
	}
	return p
}

func TestAnswersToLargerProblemsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := larger(t)
		ids, err := sat.Solve(ctx, p, enough)
		unsatisfiable, ok := errors.AsType[*sat.UnsatisfiableError](err)
		if !ok {
			if err != nil || !setOf(ids).meetsAll(p.Constraints) {
				t.Fatalf("%+v: got %v (%v)", p, ids, err)
			}
			return
		}
		for left := range len(unsatisfiable.Constraints) + 1 {
			part := sat.Problem{Variables: p.Variables}
			for i, index := range unsatisfiable.Constraints {
				if i != left {
					part.Constraints = append(part.Constraints, p.Constraints[index])
				}
			}
			_, err := sat.Solve(ctx, part, enough)
			if whole := left == len(unsatisfiable.Constraints); whole != (err != nil) {
				t.Fatalf("%+v: of %v, without number %d: %v", p, unsatisfiable.Constraints, left, err)
			}
		}
	})
}

func TestTheSameProblemHasTheSameAnswer(t *testing.T) {
	for _, p := range []sat.Problem{packages(20, 10, 3, true), refuting(30), hitting(), impossible(20, 10, 3)} {
		ids, err := sat.Solve(ctx, p, enough)
		for range 3 {
			again, errAgain := sat.Solve(ctx, p, enough)
			if !slices.Equal(ids, again) || fmt.Sprint(err) != fmt.Sprint(errAgain) {
				t.Fatalf("got %v (%v), then %v (%v)", ids, err, again, errAgain)
			}
		}
	}
}

// refuting returns a problem whose first choices are wrong for a reason that appears only at the end. The
// highest version of each package leaves its two parts without a version that both can share.
func refuting(n int) sat.Problem {
	p := sat.Problem{Variables: 6*n + 1, Constraints: []sat.Constraint{{Kind: sat.Mandatory}}}
	for i := range n {
		first := sat.ID(6*i + 1)
		high, low, left, right, a, b := first, first+1, first+2, first+3, first+4, first+5
		p.Constraints = append(p.Constraints,
			sat.Constraint{Kind: sat.Dependency, Others: []sat.ID{high, low}},
			sat.Constraint{Kind: sat.Dependency, Variable: high, Others: []sat.ID{left}},
			sat.Constraint{Kind: sat.Dependency, Variable: high, Others: []sat.ID{right}},
			sat.Constraint{Kind: sat.Dependency, Variable: left, Others: []sat.ID{a}},
			sat.Constraint{Kind: sat.Dependency, Variable: right, Others: []sat.ID{b}},
			sat.Constraint{Kind: sat.AtMost, Limit: 1, Others: []sat.ID{a, b}})
	}
	return p
}

func TestAChoiceThatCannotLastGivesWayToTheNext(t *testing.T) {
	const n = 50
	ids, err := sat.Solve(ctx, refuting(n), enough)
	if err != nil {
		t.Fatal(err)
	}
	want := []sat.ID{0}
	for i := range n {
		want = append(want, sat.ID(6*i+2))
	}
	if !slices.Equal(ids, want) {
		t.Errorf("got %v, want %v", ids, want)
	}
}

// hitting returns a problem in which one less preferred variable meets the demands that three others meet
// separately. 0 needs 1, 2 and 3, which prefer 4, 5 and 6, or take 7. 8, which is mandatory, needs a variable
// that needs 7 or 4.
func hitting() sat.Problem {
	p := sat.Problem{Variables: 10, Constraints: []sat.Constraint{{Kind: sat.Mandatory}, {Kind: sat.Mandatory, Variable: 8}}}
	for i := sat.ID(1); i <= 3; i++ {
		p.Constraints = append(p.Constraints,
			sat.Constraint{Kind: sat.Dependency, Others: []sat.ID{i}},
			sat.Constraint{Kind: sat.Dependency, Variable: i, Others: []sat.ID{3 + i, 7}})
	}
	p.Constraints = append(p.Constraints,
		sat.Constraint{Kind: sat.Dependency, Variable: 8, Others: []sat.ID{9}},
		sat.Constraint{Kind: sat.Dependency, Variable: 9, Others: []sat.ID{7, 4}})
	return p
}

func TestWhatServesSeveralReplacesWhatServesOne(t *testing.T) {
	ids, err := sat.Solve(ctx, hitting(), enough)
	if want := []sat.ID{0, 1, 2, 3, 7, 8, 9}; err != nil || !slices.Equal(ids, want) {
		t.Errorf("got %v (%v), want %v", ids, err, want)
	}
}

func TestLimitsOfEveryWidth(t *testing.T) {
	for n := 1; n <= 12; n++ {
		for limit := range n + 1 {
			c := sat.Constraint{Kind: sat.AtMost, Limit: limit}
			for id := range sat.ID(n) {
				c.Others = append(c.Others, id, id)
			}
			for count := range n + 1 {
				p := sat.Problem{Variables: n, Constraints: []sat.Constraint{c}}
				for id := range sat.ID(count) {
					p.Constraints = append(p.Constraints, sat.Constraint{Kind: sat.Mandatory, Variable: id})
				}
				if _, err := sat.Solve(ctx, p, enough); (err == nil) != (count <= limit) {
					t.Errorf("%d of %d with a limit of %d: %v", count, n, limit, err)
				}
			}
		}
	}
}

func TestWhatMeansNothingIsRefused(t *testing.T) {
	for name, p := range map[string]sat.Problem{
		"variables":  {Variables: -1},
		"kind":       {Variables: 1, Constraints: []sat.Constraint{{}}},
		"kind 9":     {Variables: 1, Constraints: []sat.Constraint{{Kind: 9}}},
		"variable":   {Variables: 1, Constraints: []sat.Constraint{{Kind: sat.Mandatory, Variable: 1}}},
		"negative":   {Variables: 1, Constraints: []sat.Constraint{{Kind: sat.Prohibited, Variable: -1}}},
		"others":     {Variables: 1, Constraints: []sat.Constraint{{Kind: sat.Conflict, Others: []sat.ID{7}}}},
		"AtMost":     {Variables: 1, Constraints: []sat.Constraint{{Kind: sat.AtMost, Others: []sat.ID{-2}}}},
		"dependency": {Constraints: []sat.Constraint{{Kind: sat.Dependency}}},
		"limit":      {Variables: 1, Constraints: []sat.Constraint{{Kind: sat.AtMost, Limit: -1}}},
	} {
		if ids, err := sat.Solve(ctx, p, enough); err == nil {
			t.Errorf("%s: %v", name, ids)
		} else if !strings.HasPrefix(err.Error(), "constraint 0: ") && name != "variables" {
			t.Errorf("%s: the error %q does not name the constraint", name, err)
		}
	}
}

func TestNothingDemandedIsNothingTaken(t *testing.T) {
	if ids, err := sat.Solve(ctx, sat.Problem{}, 0); err != nil || len(ids) != 0 {
		t.Errorf("got %v (%v)", ids, err)
	}
}

// FuzzSolve solves a problem read from bytes, and compares the result with that of the oracle.
func FuzzSolve(f *testing.F) {
	f.Add([]byte{3, 1, 0, 0, 0, 3, 0, 2, 0, 1, 2, 4, 1, 1, 0, 2})
	f.Add([]byte{7, 1, 0, 0, 0, 3, 0, 3, 0, 1, 2, 3, 5, 0, 3, 1, 1, 2, 3, 2, 1, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) { checkAgainstOracle(t, decode(data)) })
}

// decode reads the number of variables, and then constraints: kind, variable, number of others, limit, others.
// Values out of bounds are mapped into the bounds.
func decode(data []byte) sat.Problem {
	next := func(below int) int {
		if len(data) == 0 {
			return 0
		}
		b := int(data[0]) % below
		data = data[1:]
		return b
	}
	p := sat.Problem{Variables: 1 + next(8)}
	for len(data) > 0 && len(p.Constraints) < 12 {
		c := sat.Constraint{Kind: sat.Kind(1 + next(5)), Variable: sat.ID(next(p.Variables))}
		others := next(10)
		c.Limit = next(6)
		for range others {
			c.Others = append(c.Others, sat.ID(next(p.Variables)))
		}
		p.Constraints = append(p.Constraints, c)
	}
	return p
}

// TestSearchEndsWhereNothingIsLeft uses a problem for which the solver finds during the search that no solution
// is left. The solver must not be asked again after that.
func TestSearchEndsWhereNothingIsLeft(t *testing.T) {
	need := func(id sat.ID, others ...sat.ID) sat.Constraint {
		return sat.Constraint{Kind: sat.Dependency, Variable: id, Others: others}
	}
	checkAgainstOracle(t, sat.Problem{Variables: 9, Constraints: []sat.Constraint{
		{Kind: sat.Mandatory},
		{Kind: sat.Mandatory, Variable: 2},
		{Kind: sat.Conflict, Variable: 5, Others: []sat.ID{3, 4, 7, 8}},
		{Kind: sat.AtMost, Limit: 1, Others: []sat.ID{3, 4, 8}},
		need(0, 1), need(2, 3, 5), need(1, 4, 8), need(3, 4, 8), need(3, 6),
		need(4, 4, 8), need(4, 7), need(6, 8, 4),
	}})
}
