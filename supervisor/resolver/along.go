package resolver

import (
	"fmt"
	"slices"

	"github.com/chandlery/chandlery/supervisor/resolver/constraint"
)

// along adds the dependencies of every version that is to be installed. It adds the versions that are neither
// present nor installed by another Subscription, recursively. It names the Subscriptions that install the
// others.
func (r *resolution) along(answers []*answer) {
	chosen := map[node]*request{}
	for _, a := range answers {
		for _, req := range a.group {
			if e := req.chosen(a.taken); e != nil && a.failed[req] == nil {
				chosen[node{catalog: req.sub.Catalog, entry: e}] = req
			}
		}
	}
	for _, a := range answers {
		for _, req := range a.group {
			outcome := r.solution[req.sub.Name]
			if outcome.Install == nil {
				continue
			}
			t := newTrail(r, a.taken, chosen)
			t.follow(node{catalog: req.sub.Catalog, entry: outcome.Install.Entry})
			outcome.Along, outcome.With = t.choices, t.with
			r.solution[req.sub.Name] = outcome
		}
	}
}

// trail collects all dependencies of a version.
type trail struct {
	*resolution

	taken map[node]bool
	// chosen are the versions that Subscriptions install.
	chosen  map[node]*request
	seen    map[node]bool
	choices []*Choice
	with    []string
}

func newTrail(r *resolution, taken []node, chosen map[node]*request) *trail {
	t := &trail{resolution: r, taken: map[node]bool{}, chosen: chosen, seen: map[node]bool{}}
	for _, n := range taken {
		t.taken[n] = true
	}
	return t
}

// follow adds the dependencies of a version, dependencies before their dependents.
func (t *trail) follow(n node) {
	t.seen[n] = true
	for i := range n.entry.Bundle.Requires {
		t.need(n, n.catalog, &n.entry.Bundle.Requires[i])
	}
}

// need adds the provider that meets a constraint.
func (t *trail) need(n node, catalog CatalogKey, c *constraint.Constraint) {
	if c.MetBy(n.subject()) {
		return
	}
	for _, provider := range t.providers.find(catalog, c).nodes {
		if t.taken[provider] {
			t.bring(provider, n, c)
			return
		}
	}
	parts := t.evaluator.split(c)
	for i := range parts {
		t.need(n, catalog, &parts[i])
	}
}

// bring adds a version that another one needs, unless it is present or already chosen.
func (t *trail) bring(provider, by node, c *constraint.Constraint) {
	if provider.operator != nil || t.seen[provider] {
		return
	}
	if req := t.chosen[provider]; req != nil {
		if !slices.Contains(t.with, req.sub.Name) {
			t.with = append(t.with, req.sub.Name)
		}
		return
	}
	t.follow(provider)
	t.choices = append(t.choices, t.brought(provider, by, c))
}

// brought returns a needed version as a choice.
func (t *trail) brought(n, by node, c fmt.Stringer) *Choice {
	return &Choice{
		Catalog: n.catalog, Package: n.pkg(), Channel: n.entry.Channel.Name, Bundle: n.name(), Replaces: n.entry.Replaces,
		Entry: n.entry, Because: fmt.Sprintf("%s requires an operator %s", by.name(), c),
	}
}
