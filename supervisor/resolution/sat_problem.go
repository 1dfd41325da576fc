package resolution

import (
	"github.com/chandlery/chandlery/supervisor/resolution/sat"
)

// satProblem is a problem of package sat, with the meaning of its variables and constraints.
type satProblem struct {
	problem sat.Problem
	// reasons hold the meaning of each constraint of the problem.
	reasons []reason
	ids     map[node]sat.ID
	// nodes holds the nodes by their IDs. Variables that are not nodes are missing.
	nodes map[sat.ID]node
}

func newSATProblem() *satProblem {
	return &satProblem{ids: map[node]sat.ID{}, nodes: map[sat.ID]node{}}
}

// variable adds a variable.
func (p *satProblem) variable() sat.ID {
	p.problem.Variables++
	return sat.ID(p.problem.Variables - 1)
}

// node adds a node, and reports whether it is new.
func (p *satProblem) node(n node) (id sat.ID, added bool) {
	if id, known := p.ids[n]; known {
		return id, false
	}
	id = p.variable()
	p.ids[n], p.nodes[id] = id, n
	return id, true
}

// add adds a constraint.
func (p *satProblem) add(c sat.Constraint, why reason) {
	p.problem.Constraints = append(p.problem.Constraints, c)
	p.reasons = append(p.reasons, why)
}

// ordered returns all nodes in the order in which they were added.
func (p *satProblem) ordered() []node {
	nodes := make([]node, 0, len(p.nodes))
	for id := range sat.ID(p.problem.Variables) {
		if n, ok := p.nodes[id]; ok {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// decode returns the nodes among variables.
func (p *satProblem) decode(ids []sat.ID) []node {
	var nodes []node
	for _, id := range ids {
		if n, ok := p.nodes[id]; ok {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// without returns the problem without some requests, and the positions of its constraints in the whole problem.
func (p *satProblem) without(leftOut map[*request]bool) (sat.Problem, []int) {
	problem := sat.Problem{Variables: p.problem.Variables}
	var positions []int
	for i, c := range p.problem.Constraints {
		if why := p.reasons[i]; leftOut[why.request] && why.kind == subscribed {
			continue
		}
		problem.Constraints = append(problem.Constraints, c)
		positions = append(positions, i)
	}
	return problem, positions
}
