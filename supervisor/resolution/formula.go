package resolution

import (
	"github.com/chandlery/chandlery/supervisor/resolution/sat"
)

// formula is a problem of the solver, with the meaning of its variables and constraints.
type formula struct {
	problem sat.Problem
	// reasons hold the meaning of each constraint of the problem.
	reasons []reason
	ids     map[node]sat.ID
	// nodes holds the nodes by their IDs. Variables that are not nodes are missing.
	nodes map[sat.ID]node
}

func newFormula() *formula {
	return &formula{ids: map[node]sat.ID{}, nodes: map[sat.ID]node{}}
}

// variable adds a variable.
func (f *formula) variable() sat.ID {
	f.problem.Variables++
	return sat.ID(f.problem.Variables - 1)
}

// node adds a node, and reports whether it is new.
func (f *formula) node(n node) (id sat.ID, added bool) {
	if id, known := f.ids[n]; known {
		return id, false
	}
	id = f.variable()
	f.ids[n], f.nodes[id] = id, n
	return id, true
}

// add adds a constraint.
func (f *formula) add(c sat.Constraint, why reason) {
	f.problem.Constraints = append(f.problem.Constraints, c)
	f.reasons = append(f.reasons, why)
}

// ordered returns all nodes in the order in which they were added.
func (f *formula) ordered() []node {
	nodes := make([]node, 0, len(f.nodes))
	for id := range sat.ID(f.problem.Variables) {
		if n, ok := f.nodes[id]; ok {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// decode returns the nodes among variables.
func (f *formula) decode(ids []sat.ID) []node {
	var nodes []node
	for _, id := range ids {
		if n, ok := f.nodes[id]; ok {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// without returns the problem without some requests, and the positions of its constraints among those of the
// formula.
func (f *formula) without(leftOut map[*request]bool) (sat.Problem, []int) {
	problem := sat.Problem{Variables: f.problem.Variables}
	var positions []int
	for i, c := range f.problem.Constraints {
		if why := f.reasons[i]; leftOut[why.request] && why.kind == subscribed {
			continue
		}
		problem.Constraints = append(problem.Constraints, c)
		positions = append(positions, i)
	}
	return problem, positions
}
