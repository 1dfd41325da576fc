package dryrun

import (
	"slices"

	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
)

// group is the content of one InstallPlan.
type group struct {
	subscriptions []string
	// with names the Subscriptions whose versions are required.
	with []string
	// choices are the versions to install. served holds the Subscriptions of each, by the bundle's name; none for a
	// dependency.
	choices []*resolution.Choice
	served  map[string][]string
}

// groupOf returns the versions for a Subscription; nil for none.
func groupOf(subscription string, outcome resolution.Outcome) *group {
	g := &group{subscriptions: []string{subscription}, with: outcome.CoInstalled, served: map[string][]string{}}
	g.add(outcome.Dependencies...)
	if outcome.Install != nil {
		g.add(outcome.Install)
		g.served[outcome.Install.Bundle] = []string{subscription}
	}
	if len(g.choices) == 0 {
		return nil
	}
	return g
}

// groups combines the versions that share a plan: the same version for several Subscriptions, the dependencies
// of each, and versions that require what another group installs.
func groups(subscriptions []resolution.Subscription, solution resolution.Solution) []*group {
	var out []*group
	for _, sub := range subscriptions {
		g := groupOf(sub.Name, solution[sub.Name])
		if g == nil {
			continue
		}
		// Groups that belong together are merged, at the place of the first.
		at := len(out)
		for i, other := range slices.Backward(out) {
			if !other.meets(g) {
				continue
			}
			other.join(g)
			g = other
			out = slices.Delete(out, i, i+1)
			at = i
		}
		out = slices.Insert(out, at, g)
	}
	return out
}

func (g *group) add(choices ...*resolution.Choice) {
	for _, c := range choices {
		if !slices.ContainsFunc(g.choices, func(other *resolution.Choice) bool { return other.Bundle == c.Bundle }) {
			g.choices = append(g.choices, c)
		}
	}
}

func (g *group) meets(other *group) bool {
	return g.needs(other) || other.needs(g) || slices.ContainsFunc(g.choices, func(a *resolution.Choice) bool {
		return slices.ContainsFunc(other.choices, func(b *resolution.Choice) bool { return a.Bundle == b.Bundle })
	})
}

// needs reports whether the group requires versions of another group.
func (g *group) needs(other *group) bool {
	return slices.ContainsFunc(g.with, func(name string) bool { return slices.Contains(other.subscriptions, name) })
}

func (g *group) join(other *group) {
	g.with = append(slices.Clone(g.with), other.with...)
	g.subscriptions = append(g.subscriptions, other.subscriptions...)
	g.add(other.choices...)
	for bundle, names := range other.served {
		g.served[bundle] = append(g.served[bundle], names...)
	}
}

// ordered returns the choices in the order of installation: dependencies before their dependents, and otherwise
// in the given order.
func (g *group) ordered() []*resolution.Choice {
	out := make([]*resolution.Choice, 0, len(g.choices))
	seen := map[string]bool{}
	var add func(*resolution.Choice)
	add = func(c *resolution.Choice) {
		if seen[c.Bundle] {
			return
		}
		seen[c.Bundle] = true
		for _, other := range g.choices {
			if other != c && requires(c, other) {
				add(other)
			}
		}
		out = append(out, c)
	}
	for _, c := range g.choices {
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
