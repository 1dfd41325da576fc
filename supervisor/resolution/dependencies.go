package resolution

import (
	"fmt"
	"slices"

	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
)

// dependencies collects the versions that must be installed with another version: those that are neither present
// nor installed by a Subscription.
type dependencies struct {
	*resolver

	taken map[node]bool
	// chosen are the versions that Subscriptions install.
	chosen map[node]*request
	seen   map[node]bool
	// choices are the collected versions, dependencies before their dependents.
	choices []*Choice
	// coInstalled names the Subscriptions that install dependencies.
	coInstalled []string
}

func newDependencies(res *resolver, taken []node, chosen map[node]*request) *dependencies {
	d := &dependencies{resolver: res, taken: map[node]bool{}, chosen: chosen, seen: map[node]bool{}}
	for _, n := range taken {
		d.taken[n] = true
	}
	return d
}

// addOf adds the dependencies of a version, recursively.
func (d *dependencies) addOf(n node) {
	d.seen[n] = true
	for i := range n.entry.Bundle.Requires {
		d.addProvider(n, n.catalog, &n.entry.Bundle.Requires[i])
	}
}

// addProvider adds the version that meets a constraint, or the versions that do so together.
func (d *dependencies) addProvider(dependent node, catalog CatalogKey, c *constraint.Constraint) {
	if c.MetBy(dependent.subject()) {
		return
	}
	for _, provider := range d.providers.find(catalog, c).nodes {
		if d.taken[provider] {
			d.add(provider, dependent, c)
			return
		}
	}
	parts := d.evaluator.split(c)
	for i := range parts {
		d.addProvider(dependent, catalog, &parts[i])
	}
}

// add adds a version after its dependencies, unless it is present or a Subscription installs it.
func (d *dependencies) add(n, dependent node, c fmt.Stringer) {
	if n.operator != nil || d.seen[n] {
		return
	}
	if req := d.chosen[n]; req != nil {
		if !slices.Contains(d.coInstalled, req.sub.Name) {
			d.coInstalled = append(d.coInstalled, req.sub.Name)
		}
		return
	}
	d.addOf(n)
	d.choices = append(d.choices, &Choice{
		Catalog: n.catalog, Package: n.pkg(), Channel: n.entry.Channel.Name, Bundle: n.name(), Replaces: n.entry.Replaces,
		Entry: n.entry, Because: fmt.Sprintf("%s requires an operator %s", dependent.name(), c),
	})
}
