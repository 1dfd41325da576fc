package dryrun

import (
	"slices"

	"github.com/chandlery/chandlery/supervisor/resolver"
	"github.com/chandlery/chandlery/supervisor/resolver/constraint"
)

// group is what one InstallPlan holds.
type group struct {
	subscriptions []string
	// with names the Subscriptions whose versions are needed.
	with []string
	// choices are what is installed; served has the Subscriptions of each
	// by the bundle's name, none for what comes along.
	choices []*resolver.Choice
	served  map[string][]string
}

// groupOf is what a Subscription gets; nil for nothing.
func groupOf(subscription string, outcome resolver.Outcome) *group {
	g := &group{subscriptions: []string{subscription}, with: outcome.With, served: map[string][]string{}}
	g.add(outcome.Along...)
	if outcome.Install != nil {
		g.add(outcome.Install)
		g.served[outcome.Install.Bundle] = []string{subscription}
	}
	if len(g.choices) == 0 {
		return nil
	}
	return g
}

// groups puts together what shares a plan: the same version for several
// Subscriptions, what comes along with any of them, and what needs what another
// brings.
func (w *walk) groups(solution resolver.Solution) []*group {
	var out []*group
	for _, sub := range w.problem.Subscriptions {
		g := groupOf(sub.Name, solution[sub.Name])
		if g == nil {
			continue
		}
		// Whatever belongs together with it becomes part of it, at the place of the
		// first.
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

func (g *group) add(choices ...*resolver.Choice) {
	for _, c := range choices {
		if !slices.ContainsFunc(g.choices, func(other *resolver.Choice) bool { return other.Bundle == c.Bundle }) {
			g.choices = append(g.choices, c)
		}
	}
}

func (g *group) meets(other *group) bool {
	return g.needs(other) || other.needs(g) || slices.ContainsFunc(g.choices, func(a *resolver.Choice) bool {
		return slices.ContainsFunc(other.choices, func(b *resolver.Choice) bool { return a.Bundle == b.Bundle })
	})
}

// needs says whether something needs what another group brings.
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

// ordered are the choices in the order of installation: what is needed comes before
// what needs it, and else the order stays.
func (g *group) ordered() []*resolver.Choice {
	out := make([]*resolver.Choice, 0, len(g.choices))
	seen := map[string]bool{}
	var add func(*resolver.Choice)
	add = func(c *resolver.Choice) {
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

// requires says whether a version meets a dependency of another one.
func requires(c, other *resolver.Choice) bool {
	if c.Entry == nil || other.Entry == nil {
		return false
	}
	return slices.ContainsFunc(c.Entry.Bundle.Requires, func(need constraint.Constraint) bool {
		return need.Not == nil && need.MetBy(&other.Entry.Bundle.Subject)
	})
}
