package resolver

import (
	"context"
	"slices"

	"github.com/chandlery/chandlery/supervisor/resolver/constraint"
	"github.com/chandlery/chandlery/supervisor/resolver/sat"
)

// heal reinstalls dependencies that present operators have lost or never had. Other installations come first.
// If they affect a dependency, it waits for the next resolution.
func (r *resolution) heal(ctx context.Context, answers []*answer) {
	coming := entriesTaken(answers)
	_, replaced := r.end(answers)
	for _, req := range r.requests {
		if req.installed == nil || req.sub.Frozen || replaced[req.installed] != nil {
			continue
		}
		lacks := r.operators.missing(req.installed)
		if len(lacks) == 0 || anyMet(lacks, coming) {
			continue
		}
		taken, ok := r.healing(ctx, req, lacks)
		if ok && !clash(coming, taken) && !relies(taken, replaced) {
			coming = append(coming, taken...)
			r.bringBack(req, lacks, taken)
		}
	}
}

// entriesTaken returns all versions that are to be installed.
func entriesTaken(answers []*answer) []node {
	var entries []node
	for _, a := range answers {
		for _, n := range a.taken {
			if n.operator == nil {
				entries = append(entries, n)
			}
		}
	}
	return entries
}

// bringBack adds the missing dependencies of an operator to its outcome.
func (r *resolution) bringBack(req *request, lacks []*constraint.Constraint, taken []node) {
	t := newTrail(r, taken, nil)
	for _, c := range lacks {
		t.need(node{operator: req.installed}, req.sub.Catalog, c)
	}
	outcome := r.solution[req.sub.Name]
	outcome.Along = t.choices
	r.solution[req.sub.Name] = outcome
}

// anyMet reports whether one of the nodes meets one of the constraints.
func anyMet(constraints []*constraint.Constraint, nodes []node) bool {
	return slices.ContainsFunc(constraints, func(c *constraint.Constraint) bool {
		return slices.ContainsFunc(nodes, func(n node) bool { return c.MetBy(n.subject()) })
	})
}

// relies reports whether the nodes include operators that are being replaced.
func relies(taken []node, replaced map[*Operator]*request) bool {
	return slices.ContainsFunc(taken, func(n node) bool { return n.operator != nil && replaced[n.operator] != nil })
}

// healing returns the nodes that meet all missing constraints of an operator.
func (r *resolution) healing(ctx context.Context, req *request, lacks []*constraint.Constraint) ([]node, bool) {
	allowance := sat.NewAllowance(r.steps)
	for _, b := range []breadth{narrow, wide} {
		m := r.blank(b, allowance)
		id := m.consider(node{operator: req.installed})
		for _, c := range lacks {
			m.require(id, req.sub.Catalog, c, reason{kind: requires, node: node{operator: req.installed}, constraint: c})
		}
		if m.close(ctx) != nil || len(m.competing) > 0 {
			return nil, false
		}
		taken, err := m.solve(ctx, nil)
		if err == nil && m.optimal(taken) {
			return taken, !m.uncertain(taken)
		}
	}
	return nil, false
}

// clash reports whether versions to install exclude each other. A version that is not installed now is
// installed after the others.
func clash(brought, taken []node) bool {
	for _, a := range brought {
		for _, b := range taken {
			if a.operator != nil || b.operator != nil || a == b {
				continue
			}
			if a.pkg() == b.pkg() || len(commonGVKs(a.subject(), b.subject())) > 0 {
				return true
			}
		}
	}
	return false
}
