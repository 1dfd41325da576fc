package resolver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/chandlery/chandlery/supervisor/resolver/sat"
)

// solve returns the nodes of the best solution; errConflict if there is no solution. Requests that are left out
// need not be met.
func (m *model) solve(ctx context.Context, leftOut map[*request]bool) ([]node, error) {
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

// contradiction returns constraints that leave no solution, of which none can be omitted. The error is
// errNoConflict if there are none. Other errors mean that they could not be determined.
func (m *model) contradiction(ctx context.Context, leftOut map[*request]bool) ([]reason, error) {
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
	errConflict   = errors.New("constraints cannot all be satisfied")
	errNoConflict = errors.New("constraints can all be satisfied")
)

// without returns the problem without some requests, and the positions of its constraints among those of the
// model.
func (m *model) without(leftOut map[*request]bool) (sat.Problem, []int) {
	problem := sat.Problem{Variables: m.problem.Variables}
	var positions []int
	for i, c := range m.problem.Constraints {
		if why := m.reasons[i]; leftOut[why.request] && why.kind == subscribed {
			continue
		}
		problem.Constraints = append(problem.Constraints, c)
		positions = append(positions, i)
	}
	return problem, positions
}

// failure wraps the error of a solver that did not finish.
func (m *model) failure(err error) error {
	err = fmt.Errorf("resolving the Subscriptions of namespace %s: %w", m.Namespace, err)
	if _, limit := errors.AsType[*sat.LimitError](err); limit {
		return fmt.Errorf("%w; name channels and startingCSVs in the Subscriptions to narrow the choice", err)
	}
	return err
}

// outcome holds the nodes and variables of a solution for lookups.
type outcome struct {
	nodes map[node]bool
	ids   map[sat.ID]bool
}

func (m *model) outcome(taken []node) outcome {
	o := outcome{nodes: map[node]bool{}, ids: map[sat.ID]bool{}}
	for _, n := range taken {
		o.nodes[n], o.ids[m.nodes[n]] = true, true
	}
	for _, id := range m.requests {
		o.ids[id] = true
	}
	return o
}

// uncertain reports whether a catalog that is being read may have a better version than one that was taken.
func (m *model) uncertain(taken []node) bool {
	o := m.outcome(taken)
	return slices.ContainsFunc(m.choices, func(c choice) bool {
		if c.reason.kind != requires || c.equal || !o.ids[c.of] || c.certain > len(c.nodes) {
			return false
		}
		return !slices.ContainsFunc(c.nodes[:c.certain], func(n node) bool { return o.nodes[n] })
	})
}

// optimal reports whether no broader model can have a better solution: every taken node has the first alternative
// of each of its choices.
func (m *model) optimal(taken []node) bool {
	if m.breadth == wide {
		return true
	}
	o := m.outcome(taken)
	return !slices.ContainsFunc(m.choices, func(c choice) bool {
		return o.ids[c.of] && !c.equal && (len(c.nodes) == 0 || !o.nodes[c.nodes[0]])
	})
}
