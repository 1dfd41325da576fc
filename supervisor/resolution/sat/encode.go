package sat

import (
	"slices"

	"github.com/go-air/gini"
	"github.com/go-air/gini/logic"
	"github.com/go-air/gini/z"
)

const (
	// maxLiterals is the maximum size of the solver's input, in literals of its clauses. Each takes some ten bytes
	// there.
	maxLiterals = 1 << 24
	// pairs is the maximum number of variables for which an at-most-one constraint excludes every pair by a separate
	// clause.
	pairs = 5
)

// encoding is a problem as clauses in a solver.
type encoding struct {
	solver *gini.Gini
	// next is the first unused literal.
	next z.Var
	// truth is always true.
	truth z.Lit
	// guard is a literal without which the added clauses have no effect; null for none.
	guard z.Lit
}

// literal returns the literal for a variable that is taken.
func literal(id ID) z.Lit {
	return z.Var(id + 1).Pos() //nolint:gosec // bounded limits the number of variables
}

// encode adds a problem to a new solver.
func encode(p Problem) *encoding {
	e := newEncoding(p)
	for _, c := range p.Constraints {
		e.add(c)
	}
	return e
}

// encodeGuarded encodes each constraint so that it holds only if its guard, the literal at the same index, is
// assumed.
func encodeGuarded(p Problem) (*encoding, []z.Lit) {
	e := newEncoding(p)
	guards := make([]z.Lit, len(p.Constraints))
	for i, c := range p.Constraints {
		guards[i] = e.fresh()
		e.guard = guards[i]
		e.add(c)
	}
	e.guard = z.LitNull
	return e, guards
}

// bounded returns an error for a problem that is too large for the solver.
func bounded(p Problem) error {
	literals := p.Variables
	for _, c := range p.Constraints {
		literals += size(c)
		if literals > maxLiterals {
			return tooLarge()
		}
	}
	return nil
}

func tooLarge() error {
	return &LimitError{Bound: "literals of encoded constraints", Allowed: maxLiterals}
}

func newEncoding(p Problem) *encoding {
	e := &encoding{
		solver: gini.NewV(p.Variables + 2),
		next:   z.Var(p.Variables + 1), //nolint:gosec // bounded
	}
	e.truth = e.fresh()
	e.clause(e.truth)
	return e
}

// rewind resets the solver to its state before the last answer, by a clause without effect. Otherwise the
// solver would start by learning from its last conflict, and would not notice if that leaves no solution at
// all.
func (e *encoding) rewind() { e.clause(e.truth) }

// size returns an estimate of the number of literals that encode a constraint. It is never too low.
func size(c Constraint) int {
	n := len(c.Others)
	switch {
	case c.Kind == Dependency:
		return n + 2
	case c.Kind == Conflict:
		return 3 * n
	case c.Kind == AtMost && c.Limit == 0:
		return 2 * n
	case c.Kind == AtMost && c.Limit == 1:
		return 9 * n
	case c.Kind == AtMost && c.Limit < n:
		return sorterSize(n)
	default:
		return 2
	}
}

// sorterSize returns the number of literals of a sorting network: n·log²n/4 comparators of two gates with seven
// literals.
func sorterSize(n int) int {
	wires, depth := 1, 0
	for wires < n {
		wires *= 2
		depth++
	}
	if n > maxLiterals {
		return maxLiterals + 1
	}
	return wires * depth * (depth + 1) / 4 * 14
}

// fresh returns an unused literal.
func (e *encoding) fresh() z.Lit {
	lit := e.next.Pos()
	e.next++
	return lit
}

// clause requires that one of the literals is true if the guard is true.
func (e *encoding) clause(literals ...z.Lit) {
	if e.guard != z.LitNull {
		e.solver.Add(e.guard.Not())
	}
	for _, lit := range literals {
		e.solver.Add(lit)
	}
	e.solver.Add(z.LitNull)
}

func (e *encoding) add(c Constraint) {
	switch c.Kind {
	case Mandatory:
		e.clause(literal(c.Variable))
	case Prohibited:
		e.clause(literal(c.Variable).Not())
	case Dependency:
		e.dependency(c)
	case Conflict:
		for _, other := range c.Others {
			if other != c.Variable {
				e.clause(literal(c.Variable).Not(), literal(other).Not())
			}
		}
	case AtMost:
		e.atMost(c)
	}
}

func (e *encoding) dependency(c Constraint) {
	if !c.demands() {
		return
	}
	if e.guard != z.LitNull {
		e.solver.Add(e.guard.Not())
	}
	e.solver.Add(literal(c.Variable).Not())
	for _, other := range c.Others {
		e.solver.Add(literal(other))
	}
	e.solver.Add(z.LitNull)
}

func (e *encoding) atMost(c Constraint) {
	literals := distinct(c.Others)
	switch {
	case len(literals) <= c.Limit:
	case c.Limit == 0:
		for _, lit := range literals {
			e.clause(lit.Not())
		}
	case c.Limit == 1 && len(literals) <= pairs:
		for i, lit := range literals {
			for _, other := range literals[:i] {
				e.clause(lit.Not(), other.Not())
			}
		}
	case c.Limit == 1:
		e.ladder(literals)
	default:
		e.clause(e.sorter(literals).atMost(c.Limit))
	}
}

// distinct returns the literals of IDs, without duplicates, in ascending order.
func distinct(ids []ID) []z.Lit {
	literals := literals(ids)
	slices.Sort(literals)
	return slices.Compact(literals)
}

func literals(ids []ID) []z.Lit {
	literals := make([]z.Lit, len(ids))
	for i, id := range ids {
		literals[i] = literal(id)
	}
	return literals
}

// ladder requires that at most one of the literals is true. It adds a row of steps, each of which means that
// one of the literals up to it is true.
func (e *encoding) ladder(literals []z.Lit) {
	step := e.fresh()
	e.clause(literals[0].Not(), step)
	for i, lit := range literals[1:] {
		e.clause(lit.Not(), step.Not())
		if i == len(literals)-2 {
			return
		}
		next := e.fresh()
		e.clause(step.Not(), next)
		e.clause(lit.Not(), next)
		step = next
	}
}

// sorter counts how many of its literals are true.
type sorter struct {
	sorted *logic.CardSort
	// names are the solver's literals for the variables of the circuit.
	names []z.Lit
}

// sorter adds a sorting network over the literals. It only defines new literals, so no guard is needed.
func (e *encoding) sorter(literals []z.Lit) sorter {
	circuit := logic.NewCCap(sorterSize(len(literals)) / 7)
	inputs := make([]z.Lit, len(literals))
	for i := range inputs {
		inputs[i] = circuit.Lit()
	}
	sorted := logic.NewCardSort(inputs, circuit)
	names := make([]z.Lit, circuit.Len())
	for i, in := range inputs {
		names[in.Var()] = literals[i]
	}
	for i := range names {
		if i > 0 && names[i] == z.LitNull {
			names[i] = e.fresh()
		}
	}
	s := sorter{sorted: sorted, names: names}
	circuit.ToCnf(gates{to: e.solver, sorter: s})
	return s
}

// atMost returns a literal which means that at most n literals are true.
func (s sorter) atMost(n int) z.Lit { return s.name(s.sorted.Leq(n)) }

func (s sorter) name(lit z.Lit) z.Lit {
	if lit.IsPos() {
		return s.names[lit.Var()]
	}
	return s.names[lit.Var()].Not()
}

// gates passes the clauses of a circuit to the solver, with the solver's names.
type gates struct {
	to     *gini.Gini
	sorter sorter
}

// Add passes the next literal of a clause, or null for its end.
func (g gates) Add(lit z.Lit) {
	if lit == z.LitNull {
		g.to.Add(lit)
		return
	}
	g.to.Add(g.sorter.name(lit))
}
