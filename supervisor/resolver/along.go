package resolver

import (
	"fmt"
	"slices"

	"github.com/chandlery/chandlery/supervisor/catalogs/content"
)

// along finds, for every version that is to be installed, what has to come with
// it: the versions it needs, and those that these need, that are neither present
// nor brought by another Subscription.
func (r *resolution) along(answers []*answer) {
	chosen := map[node]bool{}
	for _, a := range answers {
		for _, w := range a.group {
			if e := w.newest(a.taken); e != nil && a.failed[w] == nil {
				chosen[node{catalog: w.sub.Catalog, entry: e}] = true
			}
		}
	}
	for _, a := range answers {
		for _, w := range a.group {
			outcome := r.solution[w.sub.Name]
			if outcome.Install == nil {
				continue
			}
			t := trail{resolution: r, taken: a.taken, chosen: chosen, seen: map[node]bool{}}
			t.follow(node{catalog: w.sub.Catalog, entry: outcome.Install.Entry})
			outcome.Along = t.choices
			r.solution[w.sub.Name] = outcome
		}
	}
}

// trail leads from a version to all that it needs.
type trail struct {
	*resolution

	taken   []node
	chosen  map[node]bool
	seen    map[node]bool
	choices []*Choice
}

// follow adds what a version needs, what is needed before what needs it.
func (t *trail) follow(n node) {
	t.seen[n] = true
	for i := range n.entry.Bundle.Requires {
		c := &n.entry.Bundle.Requires[i]
		if c.MetBy(n.subject()) {
			continue
		}
		for _, provider := range t.taken {
			brought := provider.operator == nil && !t.chosen[provider]
			if brought && !t.seen[provider] && t.meets(provider, c) {
				t.follow(provider)
				t.choices = append(t.choices, t.brought(provider, n, c))
			}
		}
	}
}

// brought makes a version that is needed a choice.
func (t *trail) brought(n, by node, c fmt.Stringer) *Choice {
	return &Choice{
		Catalog: n.catalog, Package: n.pkg(), Channel: n.entry.Channel.Name, Bundle: n.name(), Replaces: n.entry.Replaces,
		Entry: n.entry, Because: fmt.Sprintf("%s requires an operator %s", by.name(), c),
	}
}

// because says why a version was chosen for a wish.
func (r *resolution) because(w *wish, e *content.Entry) string {
	why := "head of channel " + e.Channel.Name
	switch {
	case w.sub.Installed != "":
		why = succession(e, w.sub.Installed, w.installed.version())
	case e.Bundle.Name == w.sub.Before:
		why = "the version that was there before"
	case e.Bundle.Name == w.sub.StartingCSV && w.sub.Before == "":
		why = "spec.startingCSV"
	}
	if at := slices.Index(w.entries, e); at > 0 {
		why = fmt.Sprintf("%s; %s is held back", why, w.entries[0].Bundle.Name)
	}
	return why
}
