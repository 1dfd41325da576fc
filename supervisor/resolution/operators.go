package resolution

import (
	"slices"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
)

// operators are the present operators, with indexes.
type operators struct {
	all       []Operator
	byName    map[string]*Operator
	byPackage map[string][]*Operator
	byAPI     map[bundles.GVK][]*Operator
	// dependents holds the dependencies of other operators that an operator meets.
	dependents map[*Operator][]dependency
	evaluator  *evaluator
}

// dependency is a constraint of a present operator.
type dependency struct {
	of         *Operator
	constraint *constraint.Constraint
}

func newOperators(all []Operator, e *evaluator) *operators {
	ops := &operators{
		all: all, byName: map[string]*Operator{}, byPackage: map[string][]*Operator{}, byAPI: map[bundles.GVK][]*Operator{},
		dependents: map[*Operator][]dependency{}, evaluator: e,
	}
	for i := range all {
		o := &all[i]
		ops.byName[o.Name] = o
		if pkg := o.Subject.Package; pkg != "" {
			ops.byPackage[pkg] = append(ops.byPackage[pkg], o)
		}
		for _, gvk := range o.Subject.GVKs {
			ops.byAPI[gvk] = append(ops.byAPI[gvk], o)
		}
		for j := range o.Requires {
			ops.addDependency(o, &o.Requires[j])
		}
	}
	return ops
}

// addDependency records the operators that meet a constraint of an operator, or its parts if several do so
// together. A constraint that the operator itself meets is not a dependency.
func (ops *operators) addDependency(of *Operator, c *constraint.Constraint) {
	if c.MetBy(&of.Subject) {
		return
	}
	alone := false
	for i := range ops.all {
		if provider := &ops.all[i]; ops.evaluator.met(c, &provider.Subject) {
			ops.dependents[provider] = append(ops.dependents[provider], dependency{of: of, constraint: c})
			alone = true
		}
	}
	if alone {
		return
	}
	parts := ops.evaluator.split(c)
	for i := range parts {
		ops.addDependency(of, &parts[i])
	}
}

// version returns the version of an operator; zero for an unknown operator or version.
func (ops *operators) version(name string) semver.Version {
	if o := ops.byName[name]; o != nil {
		return o.Subject.Version
	}
	return semver.Version{}
}

// conflicting returns the operators that a version excludes: another version of its package, and providers of the
// same APIs.
func (ops *operators) conflicting(n node) []node {
	if len(ops.all) == 0 {
		return nil
	}
	var found []node
	add := func(operators []*Operator) {
		for _, o := range operators {
			if other := (node{operator: o}); !slices.Contains(found, other) {
				found = append(found, other)
			}
		}
	}
	add(ops.byPackage[n.pkg()])
	for _, gvk := range n.subject().GVKs {
		add(ops.byAPI[gvk])
	}
	return found
}

// meeting returns the operators that meet a dependency of another one.
func (ops *operators) meeting(d dependency) []*Operator {
	var found []*Operator
	for i := range ops.all {
		if o := &ops.all[i]; o != d.of && d.constraint.MetBy(&o.Subject) {
			found = append(found, o)
		}
	}
	return found
}

// missing returns the constraints of an operator that no operator meets.
func (ops *operators) missing(of *Operator) []*constraint.Constraint {
	var missing []*constraint.Constraint
	for i := range of.Requires {
		if c := &of.Requires[i]; !ops.meet(c) {
			missing = append(missing, c)
		}
	}
	return missing
}

// meet reports whether the operators meet a constraint, one alone or several together.
func (ops *operators) meet(c *constraint.Constraint) bool {
	for i := range ops.all {
		if c.MetBy(&ops.all[i].Subject) {
			return true
		}
	}
	parts := ops.evaluator.split(c)
	for i := range parts {
		if !ops.meet(&parts[i]) {
			return false
		}
	}
	return len(parts) > 0
}
