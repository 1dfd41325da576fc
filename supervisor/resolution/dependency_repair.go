package resolution

import (
	"context"
	"slices"

	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/supervisor/resolution/sat"
)

// dependencyRepairer reinstalls dependencies that present operators have lost or never had. Other installations come
// first. If they affect a dependency, it is reinstalled by the next resolution.
type dependencyRepairer struct {
	*resolver

	steps int
	// replaced holds the requests that replace operators.
	replaced map[*Operator]*request
	// installing are the versions that are to be installed.
	installing []node
}

func newDependencyRepairer(res *resolver, results []*groupResult, steps int) *dependencyRepairer {
	return &dependencyRepairer{resolver: res, steps: steps, replaced: replaced(results), installing: entriesTaken(results)}
}

// repair returns the missing dependencies of an installed operator that can be installed now.
func (r *dependencyRepairer) repair(ctx context.Context, req *request) []*Choice {
	if req.installed == nil || req.sub.InProgress || r.replaced[req.installed] != nil {
		return nil
	}
	missing := r.operators.missing(req.installed)
	if len(missing) == 0 || anyMet(missing, r.installing) {
		return nil
	}
	taken, ok := r.solve(ctx, req, missing)
	if !ok || conflict(r.installing, taken) || r.usesReplaced(taken) {
		return nil
	}
	r.installing = append(r.installing, taken...)
	d := newDependencies(r.resolver, taken, nil)
	for _, c := range missing {
		d.addProvider(node{operator: req.installed}, req.sub.Catalog, c)
	}
	return d.choices
}

// anyMet reports whether one of the nodes meets one of the constraints.
func anyMet(constraints []*constraint.Constraint, nodes []node) bool {
	return slices.ContainsFunc(constraints, func(c *constraint.Constraint) bool {
		return slices.ContainsFunc(nodes, func(n node) bool { return c.MetBy(n.subject()) })
	})
}

// usesReplaced reports whether the nodes include operators that are being replaced.
func (r *dependencyRepairer) usesReplaced(taken []node) bool {
	return slices.ContainsFunc(taken, func(n node) bool { return n.operator != nil && r.replaced[n.operator] != nil })
}

// solve returns the nodes that meet all missing constraints of an operator.
func (r *dependencyRepairer) solve(ctx context.Context, req *request, missing []*constraint.Constraint) ([]node, bool) {
	allowance := sat.NewAllowance(r.steps)
	for _, breadth := range []breadth{narrow, wide} {
		b := r.newBuilder(nil, breadth, allowance)
		dependent := node{operator: req.installed}
		id := b.consider(dependent)
		for _, c := range missing {
			b.require(id, req.sub.Catalog, c, reason{kind: requires, node: dependent, constraint: c})
		}
		p, err := b.build(ctx)
		if err != nil || len(p.competing) > 0 {
			return nil, false
		}
		taken, err := p.solve(ctx, nil)
		if err == nil && p.optimal(taken) {
			return taken, !p.uncertain(taken)
		}
	}
	return nil, false
}

// conflict reports whether versions to install exclude each other. A version that is not installed now is
// installed after the others.
func conflict(installing, taken []node) bool {
	for _, a := range installing {
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
