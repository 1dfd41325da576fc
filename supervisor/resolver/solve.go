package resolver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/chandlery/chandlery/supervisor/resolver/sat"
)

// solve gives the nodes that are there in the end, of those that the model knows;
// errConflict when there is no solution. Wishes that are left out need not be met.
func (m *model) solve(ctx context.Context, leftOut map[*wish]bool) ([]node, error) {
	problem, _ := m.without(leftOut)
	taken, err := m.allowance.Find(ctx, problem)
	if errors.Is(err, sat.ErrNone) {
		return nil, errConflict
	}
	if err != nil {
		return nil, m.failure(err)
	}
	var nodes []node
	for _, id := range taken {
		if n, ok := m.order[id]; ok {
			nodes = append(nodes, n)
		}
	}
	return nodes, nil
}

// contradiction gives constraints that leave no solution, of which none can be left
// out. The error says that they could not be found; errNoConflict, that there are
// none.
func (m *model) contradiction(ctx context.Context, leftOut map[*wish]bool) ([]reason, error) {
	problem, positions := m.without(leftOut)
	_, err := m.allowance.Solve(ctx, problem)
	contradiction, ok := errors.AsType[*sat.UnsatisfiableError](err)
	switch {
	case err == nil:
		return nil, errNoConflict
	case !ok:
		return nil, m.failure(err)
	}
	reasons := make([]reason, len(contradiction.Constraints))
	for i, at := range contradiction.Constraints {
		reasons[i] = m.reasons[positions[at]]
	}
	return reasons, nil
}

var (
	errConflict   = errors.New("not all of it can be had")
	errNoConflict = errors.New("all of it can be had")
)

// without is the problem without some wishes, and where its constraints are among
// those of the model.
func (m *model) without(leftOut map[*wish]bool) (sat.Problem, []int) {
	problem := sat.Problem{Variables: m.problem.Variables}
	var positions []int
	for i, c := range m.problem.Constraints {
		if why := m.reasons[i]; leftOut[why.wish] && why.kind == wished {
			continue
		}
		problem.Constraints = append(problem.Constraints, c)
		positions = append(positions, i)
	}
	return problem, positions
}

// failure says that the solver came to no end.
func (m *model) failure(err error) error {
	err = fmt.Errorf("resolving the Subscriptions of namespace %s: %w", m.Namespace, err)
	if _, limit := errors.AsType[*sat.LimitError](err); limit {
		return fmt.Errorf("%w; name channels and startingCSVs in the Subscriptions to narrow the choice", err)
	}
	return err
}

// outcome is what a solution takes, to be looked up.
type outcome struct {
	nodes map[node]bool
	ids   map[sat.ID]bool
}

func (m *model) outcome(taken []node) outcome {
	o := outcome{nodes: map[node]bool{}, ids: map[sat.ID]bool{}}
	for _, n := range taken {
		o.nodes[n], o.ids[m.nodes[n]] = true, true
	}
	for _, id := range m.wishes {
		o.ids[id] = true
	}
	return o
}

// unsure says whether a catalog that is being read may have something better than
// what was taken.
func (m *model) unsure(taken []node) bool {
	o := m.outcome(taken)
	return slices.ContainsFunc(m.choices, func(c choice) bool {
		if c.reason.kind != requires || c.equal || !o.ids[c.of] || c.sure > len(c.nodes) {
			return false
		}
		return !slices.ContainsFunc(c.nodes[:c.sure], func(n node) bool { return o.nodes[n] })
	})
}

// best says whether no model of more breadth can have a better solution: whatever
// was taken has the first alternative of each of its choices.
func (m *model) best(taken []node) bool {
	if m.breadth == wide {
		return true
	}
	o := m.outcome(taken)
	return !slices.ContainsFunc(m.choices, func(c choice) bool {
		return o.ids[c.of] && !c.equal && (len(c.nodes) == 0 || !o.nodes[c.nodes[0]])
	})
}
