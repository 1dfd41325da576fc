package dryrun

import (
	"slices"

	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
)

// installPlan is the content of one InstallPlan that a dry run predicts.
type installPlan struct {
	subscriptions []string
	// dependsOn names the Subscriptions whose versions are required.
	dependsOn []string
	// choices are the versions to install. served holds the Subscriptions of each, by the bundle's name; none for a
	// dependency.
	choices []*resolution.Choice
	served  map[string][]string
}

// newInstallPlan returns a plan with the versions for a Subscription; nil for none.
func newInstallPlan(subscription string, outcome resolution.Outcome) *installPlan {
	p := &installPlan{subscriptions: []string{subscription}, dependsOn: outcome.CoInstalled, served: map[string][]string{}}
	p.add(outcome.Dependencies...)
	if outcome.Install != nil {
		p.add(outcome.Install)
		p.served[outcome.Install.Bundle] = []string{subscription}
	}
	if len(p.choices) == 0 {
		return nil
	}
	return p
}

// installPlans returns the plans of a solution. Versions share a plan if they are the same version for several
// Subscriptions, if one is a dependency of the other, or if one requires what the plan of the other installs.
func installPlans(subscriptions []resolution.Subscription, solution resolution.Solution) []*installPlan {
	var out []*installPlan
	for _, sub := range subscriptions {
		p := newInstallPlan(sub.Name, solution[sub.Name])
		if p == nil {
			continue
		}
		// Plans that overlap are joined, at the position of the first.
		at := len(out)
		for i, other := range slices.Backward(out) {
			if !other.overlaps(p) {
				continue
			}
			other.join(p)
			p = other
			out = slices.Delete(out, i, i+1)
			at = i
		}
		out = slices.Insert(out, at, p)
	}
	return out
}

func (p *installPlan) add(choices ...*resolution.Choice) {
	for _, c := range choices {
		if !slices.ContainsFunc(p.choices, func(other *resolution.Choice) bool { return other.Bundle == c.Bundle }) {
			p.choices = append(p.choices, c)
		}
	}
}

func (p *installPlan) overlaps(other *installPlan) bool {
	return p.needs(other) || other.needs(p) || slices.ContainsFunc(p.choices, func(a *resolution.Choice) bool {
		return slices.ContainsFunc(other.choices, func(b *resolution.Choice) bool { return a.Bundle == b.Bundle })
	})
}

// needs reports whether the plan requires versions of another plan.
func (p *installPlan) needs(other *installPlan) bool {
	return slices.ContainsFunc(p.dependsOn, func(name string) bool { return slices.Contains(other.subscriptions, name) })
}

func (p *installPlan) join(other *installPlan) {
	p.dependsOn = append(slices.Clone(p.dependsOn), other.dependsOn...)
	p.subscriptions = append(p.subscriptions, other.subscriptions...)
	p.add(other.choices...)
	for bundle, names := range other.served {
		p.served[bundle] = append(p.served[bundle], names...)
	}
}

// ordered returns the choices in the order of installation: dependencies before their dependents, and otherwise
// in the given order.
func (p *installPlan) ordered() []*resolution.Choice {
	out := make([]*resolution.Choice, 0, len(p.choices))
	seen := map[string]bool{}
	var add func(*resolution.Choice)
	add = func(c *resolution.Choice) {
		if seen[c.Bundle] {
			return
		}
		seen[c.Bundle] = true
		for _, other := range p.choices {
			if other != c && requires(c, other) {
				add(other)
			}
		}
		out = append(out, c)
	}
	for _, c := range p.choices {
		add(c)
	}
	return out
}

// requires reports whether c has a dependency that other meets.
func requires(c, other *resolution.Choice) bool {
	if c.Entry == nil || other.Entry == nil {
		return false
	}
	return slices.ContainsFunc(c.Entry.Bundle.Requires, func(need constraint.Constraint) bool {
		return need.Not == nil && need.MetBy(&other.Entry.Bundle.Subject)
	})
}
