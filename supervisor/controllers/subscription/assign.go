package subscription

import (
	"slices"

	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// assignment is the content of one plan: the versions that it installs, and the Subscriptions that
// it serves.
type assignment struct {
	versions []plansteps.Identity
	choices  []*resolution.Choice // in the order of versions
	served   []*decision
}

// assign divides decisions among plans. Decisions share a plan if they have a version in common, or
// if one needs a version of the other. A plan is approved as a whole.
func assign(decisions []*decision) []*assignment {
	var assignments []*assignment
	for _, d := range decisions {
		if len(d.choices()) == 0 {
			continue
		}
		var served []*decision
		var apart []*assignment
		for _, a := range assignments {
			if !a.meets(d) {
				apart = append(apart, a)
				continue
			}
			served = append(served, a.served...)
		}
		apart = append(apart, newAssignment(append(served, d)))
		assignments = apart
	}
	return assignments
}

// newAssignment returns an assignment for some decisions. It lists first the versions that
// Subscriptions ask for, in the order of the Subscriptions, and then their dependencies.
func newAssignment(served []*decision) *assignment {
	a := &assignment{served: served}
	add := func(v plansteps.Identity, c *resolution.Choice) {
		if a.index(v) < 0 {
			a.versions, a.choices = append(a.versions, v), append(a.choices, c)
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
	return a
}

// meets reports whether a decision and an assignment have a version in common, or one needs a
// version of the other.
func (a *assignment) meets(d *decision) bool {
	for _, other := range a.served {
		if slices.Contains(d.dependsOn, other.subscription.Name) || slices.Contains(other.dependsOn, d.subscription.Name) {
			return true
		}
	}
	return slices.ContainsFunc(d.identities, func(v plansteps.Identity) bool { return a.index(v) >= 0 })
}

// index returns the position of a version, whether a Subscription asks for it or not; negative when
// it is absent.
func (a *assignment) index(v plansteps.Identity) int {
	v.Generated = false
	return slices.IndexFunc(a.versions, func(other plansteps.Identity) bool {
		other.Generated = false
		return other == v
	})
}

// names returns the names of the versions.
func (a *assignment) names() []string {
	names := make([]string, 0, len(a.versions))
	for _, v := range a.versions {
		names = append(names, v.Bundle)
	}
	return names
}

// olderVersion returns the name of the version whose definitions replace newer ones; empty for none.
func (a *assignment) olderVersion() string {
	for _, d := range a.served {
		if older := d.olderVersion(); older != nil {
			return older.Bundle
		}
	}
	return ""
}
