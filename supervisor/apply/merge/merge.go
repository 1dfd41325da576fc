// Package merge computes the content of an object after a manifest was written over it with an update. The
// result has the fields of the manifest and all fields that others set. It lacks the fields that an earlier
// manifest had and this one lacks.
//
// The managed fields of the object, which the API server records for every write, show who set which field.
// They also show how lists are merged, so no schema is needed. The entries of a list that is merged by key have
// paths of their own. A list that is replaced as a whole has none.
package merge

import (
	"encoding/json"
	"reflect"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Owned holds the fields of a live object by who set them.
type Owned struct {
	// Mine holds the fields that earlier manifests set.
	Mine *fieldpath.Set
	// Others holds the fields that other managers set.
	Others *fieldpath.Set
}

// Objects returns the live object with the wanted one written over it. It changes neither; the result may share
// parts with both.
//
// A field of live that wanted lacks is removed if Mine has it and Others does not. An object without any
// managed fields keeps its top-level fields, those of its metadata, and those directly below spec that wanted
// does not mention.
func Objects(live, wanted map[string]any, owned Owned) map[string]any {
	at := node{mine: owned.Mine, others: owned.Others, untracked: owned.Mine.Empty() && owned.Others.Empty()}
	return at.maps(live, wanted)
}

// Same reports whether two objects have the same content. A field that is null counts as a missing one.
func Same(a, b map[string]any) bool {
	return reflect.DeepEqual(withoutNulls(a), withoutNulls(b))
}

// node is a place in an object: a field, an entry of a list, or the object itself.
type node struct {
	// mine and others are the fields below the node.
	mine, others *fieldpath.Set
	// myLeaf and othersLeaf report whether the node itself was set.
	myLeaf, othersLeaf bool
	// untracked is true for an object that has no managed fields. depth is the number of fields from the root of the
	// object to the node.
	untracked bool
	depth     int
	// path is the name of the field, below the name of its parent at the first two levels.
	path string
}

func (n node) child(pe fieldpath.PathElement) node {
	c := node{mine: below(n.mine, pe), others: below(n.others, pe), untracked: n.untracked, depth: n.depth + 1}
	c.myLeaf, c.othersLeaf = n.mine.Members.Has(pe), n.others.Members.Has(pe)
	if pe.FieldName != nil && n.depth < 2 { //nolint:mnd // metadata.labels has two
		c.path = n.path + "." + *pe.FieldName
	}
	return c
}

func (n node) field(name string) node {
	return n.child(fieldpath.PathElement{FieldName: &name})
}

func below(s *fieldpath.Set, pe fieldpath.PathElement) *fieldpath.Set {
	if child, ok := s.Children.Get(pe); ok {
		return child
	}
	return &fieldpath.Set{}
}

func (n node) isMine() bool   { return n.myLeaf || !n.mine.Empty() }
func (n node) isOthers() bool { return n.othersLeaf || !n.others.Empty() }

// open reports whether the map at a node is always merged key by key, since many writers add labels and
// annotations.
func (n node) open() bool {
	return n.path == ".metadata" || n.path == ".metadata.labels" || n.path == ".metadata.annotations"
}

// whole reports whether the map or list at a node is replaced as a whole.
func (n node) whole() bool {
	switch {
	case n.open():
		return false
	case n.untracked:
		return n.depth > 1 || (n.depth == 1 && n.path != ".spec")
	default:
		return (n.myLeaf || n.othersLeaf) && n.mine.Empty() && n.others.Empty()
	}
}

func (n node) values(live, wanted any) any {
	switch w := wanted.(type) {
	case map[string]any:
		if l, ok := live.(map[string]any); ok && !n.whole() {
			return n.maps(l, w)
		}
	case []any:
		if l, ok := live.([]any); ok {
			return n.lists(l, w)
		}
	}
	return wanted
}

func (n node) maps(live, wanted map[string]any) map[string]any {
	out := make(map[string]any, len(live)+len(wanted))
	for key, l := range live {
		c := n.field(key)
		w, has := wanted[key]
		switch {
		case has && w == nil && c.isOthers() && !c.isMine():
			// Generators write null for what they do not set.
			out[key] = l
		case has:
			out[key] = c.values(l, w)
		default:
			if kept, stays := c.prune(l); stays {
				out[key] = kept
			}
		}
	}
	for key, w := range wanted {
		if _, has := live[key]; !has {
			out[key] = w
		}
	}
	return out
}

// prune returns the part of a live value that remains if the manifest does not mention it.
func (n node) prune(live any) (kept any, stays bool) {
	switch {
	case !n.isMine():
		return live, true
	case !n.isOthers() && !n.open():
		return nil, false
	}
	switch l := live.(type) {
	case map[string]any:
		if n.whole() {
			return live, true
		}
		out := n.maps(l, nil)
		return out, len(out) > 0 || n.othersLeaf
	case []any:
		out := n.lists(l, nil)
		return out, len(out) > 0 || n.othersLeaf
	default:
		return live, true
	}
}

// lists merges two lists in the way that the managed fields of their entries show.
func (n node) lists(live, wanted []any) []any {
	entries := n.entries()
	switch {
	case entries == nil && wanted == nil:
		return live
	case entries == nil:
		return wanted
	}
	m := &listMerge{node: n, entries: entries, live: live, wantedAs: groups(wanted, entries), out: []any{}}
	liveAs := groups(live, entries)
	for _, w := range wanted {
		id := entries.id(w)
		there := liveAs[id]
		if len(there) > 0 {
			m.stayers(there[0])
		}
		if len(there) == 1 && len(m.wantedAs[id]) == 1 {
			w = n.entry(entries, id).values(live[there[0]], w)
		}
		// Entries with the same key are one value.
		m.out = append(m.out, w)
	}
	m.stayers(len(live))
	return m.out
}

// listMerge is the state of a merge of two lists.
type listMerge struct {
	node    node
	entries *keys
	live    []any
	// wantedAs holds the positions of the manifest's entries by identity.
	wantedAs map[string][]int
	// next is the index of the first entry of live that was not visited yet.
	next int
	out  []any
}

// stayers adds the entries of live, up to a position, that the manifest does not have.
func (m *listMerge) stayers(end int) {
	for ; m.next < end; m.next++ {
		id := m.entries.id(m.live[m.next])
		if _, has := m.wantedAs[id]; has {
			continue
		}
		if kept, stays := m.node.entry(m.entries, id).prune(m.live[m.next]); stays {
			m.out = append(m.out, kept)
		}
	}
}

// entry returns the node of an entry of a list.
func (n node) entry(k *keys, id string) node {
	pe, ok := k.elements[id]
	if !ok {
		return node{mine: &fieldpath.Set{}, others: &fieldpath.Set{}, depth: n.depth + 1}
	}
	return n.child(pe)
}

// keys identifies the entries of a list.
type keys struct {
	// names are the fields that form the key; empty for a list of distinct values.
	names []string
	// elements are the paths of the entries that any manager set, by identity.
	elements map[string]fieldpath.PathElement
}

// entries returns how the entries of a list are identified; nil for a list that is replaced as a whole.
func (n node) entries() *keys {
	found := &keys{elements: map[string]fieldpath.PathElement{}}
	mixed := false
	add := func(pe fieldpath.PathElement) {
		switch {
		case pe.Key != nil:
			fields := map[string]any{}
			var names []string
			for _, f := range *pe.Key {
				names = append(names, f.Name)
				fields[f.Name] = f.Value.Unstructured()
			}
			mixed = mixed || (found.names != nil && !reflect.DeepEqual(found.names, names))
			found.names = names
			found.elements[text(fields)] = pe
		case pe.Value != nil:
			found.elements[text((*pe.Value).Unstructured())] = pe
		}
	}
	for _, s := range []*fieldpath.Set{n.mine, n.others} {
		s.Members.Iterate(add)
		s.Children.Iterate(add)
	}
	if mixed || len(found.elements) == 0 {
		return nil
	}
	return found
}

// id returns the identity of an entry of a list.
func (k *keys) id(entry any) string {
	m, is := entry.(map[string]any)
	if len(k.names) == 0 || !is {
		return text(entry)
	}
	fields := map[string]any{}
	for _, name := range k.names {
		fields[name] = m[name]
		if _, has := m[name]; !has && name == "protocol" {
			// The protocol is the only part of a key of the Kubernetes API that has a default.
			fields[name] = "TCP"
		}
	}
	return text(fields)
}

// groups returns the positions of the entries of a list by identity.
func groups(list []any, k *keys) map[string][]int {
	at := make(map[string][]int, len(list))
	for i, entry := range list {
		id := k.id(entry)
		at[id] = append(at[id], i)
	}
	return at
}

// text returns a value as JSON. Equal values have equal texts.
func text(v any) string {
	encoded, err := json.Marshal(v)
	if err != nil {
		return value.ToString(value.NewValueInterface(v))
	}
	return string(encoded)
}

func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, e := range v {
			if e != nil {
				out[key] = withoutNulls(e)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = withoutNulls(e)
		}
		return out
	default:
		return v
	}
}
