package subscription

import (
	"slices"

	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// desiredPlan is the desired content of an InstallPlan: the versions that it installs, and the
// Subscriptions that it serves.
type desiredPlan struct {
	versions []plansteps.Identity
	choices  []*resolution.Choice // in the order of versions
	served   []*decision
}

// desiredPlans returns the plans for some decisions. Decisions share a plan if they have a version in
// common, or if one needs a version of the other. A plan is approved as a whole.
func desiredPlans(decisions []*decision) []*desiredPlan {
	var plans []*desiredPlan
	for _, d := range decisions {
		if len(d.choices()) == 0 {
			continue
		}
		var served []*decision
		var others []*desiredPlan
		for _, p := range plans {
			if !p.overlaps(d) {
				others = append(others, p)
				continue
			}
			served = append(served, p.served...)
		}
		others = append(others, newDesiredPlan(append(served, d)))
		plans = others
	}
	return plans
}

// newDesiredPlan returns one plan for some decisions. It lists first the versions that Subscriptions
// ask for, in the order of the Subscriptions, and then their dependencies.
func newDesiredPlan(served []*decision) *desiredPlan {
	p := &desiredPlan{served: served}
	add := func(v plansteps.Identity, c *resolution.Choice) {
		if p.index(v) < 0 {
			p.versions, p.choices = append(p.versions, v), append(p.choices, c)
		}
	}
	for _, d := range served {
		if d.install != nil {
			add(d.identities[0], d.install)
		}
	}
	for _, d := range served {
		first := len(d.choices()) - len(d.coInstalled)
		for i, c := range d.coInstalled {
			add(d.identities[first+i], c)
		}
	}
	return p
}

// overlaps reports whether a decision and a plan have a version in common, or one needs a version of
// the other.
func (p *desiredPlan) overlaps(d *decision) bool {
	for _, other := range p.served {
		if slices.Contains(d.dependsOn, other.subscription.Name) || slices.Contains(other.dependsOn, d.subscription.Name) {
			return true
		}
	}
	return slices.ContainsFunc(d.identities, func(v plansteps.Identity) bool { return p.index(v) >= 0 })
}

// index returns the position of a version, whether a Subscription asks for it or not; negative when
// it is absent.
func (p *desiredPlan) index(v plansteps.Identity) int {
	v.Generated = false
	return slices.IndexFunc(p.versions, func(other plansteps.Identity) bool {
		other.Generated = false
		return other == v
	})
}

// names returns the names of the versions.
func (p *desiredPlan) names() []string {
	names := make([]string, 0, len(p.versions))
	for _, v := range p.versions {
		names = append(names, v.Bundle)
	}
	return names
}

// olderVersion returns the name of the version whose definitions replace newer ones; empty for none.
func (p *desiredPlan) olderVersion() string {
	for _, d := range p.served {
		if older := d.olderVersion(); older != nil {
			return older.Bundle
		}
	}
	return ""
}
