package resolver

import (
	"slices"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolver/sat"
)

// rivalsOf gives the operators present that a version cannot be beside: another
// one of its package, and those that bring the same APIs.
func (m *model) rivalsOf(n node) []node {
	if len(m.Operators) == 0 {
		return nil
	}
	var found []node
	add := func(operators []*Operator) {
		for _, o := range operators {
			if rival := (node{operator: o}); !slices.Contains(found, rival) {
				found = append(found, rival)
			}
		}
	}
	add(m.byPackage[n.pkg()])
	for _, gvk := range n.subject().GVKs {
		add(m.byAPI[gvk])
	}
	return found
}

// exclude adds what cannot be beside each other: two versions of a package, two
// providers of an API. Operators that are present are facts, so that there is
// nothing to demand among themselves.
func (m *model) exclude() {
	var entries []node
	packages := map[string][]node{}
	var order []string
	for _, n := range m.known() {
		if n.operator != nil {
			continue
		}
		entries = append(entries, n)
		if packages[n.pkg()] == nil {
			order = append(order, n.pkg())
		}
		packages[n.pkg()] = append(packages[n.pkg()], n)
		for _, present := range m.rivalsOf(n) {
			m.add(sat.Constraint{Kind: sat.Conflict, Variable: m.nodes[present], Others: []sat.ID{m.nodes[n]}},
				reason{kind: beside, node: present, other: n})
		}
	}
	for _, pkg := range order {
		m.atMostOne(packages[pkg], reason{kind: onePackage, pkg: pkg})
	}
	m.excludeProviders(entries)
}

// excludeProviders lets an API be provided once. Only those that several packages
// provide matter. Versions of a package mostly share the list of what they
// provide, which is looked at once then.
func (m *model) excludeProviders(entries []node) {
	shared := sharedAPIs(entries)
	if len(shared) == 0 {
		return
	}
	providers := map[bundles.GVK][]node{}
	var order []bundles.GVK
	of := map[apis][]bundles.GVK{}
	for _, n := range entries {
		list := n.subject().GVKs
		if len(list) == 0 {
			continue
		}
		common, known := of[apisOf(list)]
		if !known {
			common = slices.DeleteFunc(slices.Clone(list), func(gvk bundles.GVK) bool { return !shared[gvk] })
			of[apisOf(list)] = common
		}
		for _, gvk := range common {
			if providers[gvk] == nil {
				order = append(order, gvk)
			}
			if same := providers[gvk]; len(same) == 0 || same[len(same)-1] != n {
				providers[gvk] = append(providers[gvk], n)
			}
		}
	}
	for _, gvk := range order {
		m.atMostOne(providers[gvk], reason{kind: oneAPI, gvk: gvk})
	}
}

// apis tells lists of APIs apart without a look at what is in them: equal lists are
// mostly one and the same.
type apis struct {
	first *bundles.GVK
	count int
}

func apisOf(list []bundles.GVK) apis { return apis{first: &list[0], count: len(list)} }

// sharedAPIs gives the APIs that entries of several packages provide.
func sharedAPIs(entries []node) map[bundles.GVK]bool {
	shared := map[bundles.GVK]bool{}
	owner := map[bundles.GVK]string{}
	type offer struct {
		pkg  string
		apis apis
	}
	seen := map[offer]bool{}
	for _, n := range entries {
		list := n.subject().GVKs
		if len(list) == 0 || seen[offer{n.pkg(), apisOf(list)}] {
			continue
		}
		seen[offer{n.pkg(), apisOf(list)}] = true
		for _, gvk := range list {
			if pkg, known := owner[gvk]; known && pkg != n.pkg() {
				shared[gvk] = true
			}
			owner[gvk] = n.pkg()
		}
	}
	return shared
}

func (m *model) atMostOne(nodes []node, why reason) {
	if len(nodes) < 2 {
		return
	}
	ids := make([]sat.ID, len(nodes))
	for i, n := range nodes {
		ids[i] = m.nodes[n]
	}
	m.add(sat.Constraint{Kind: sat.AtMost, Limit: 1, Others: ids}, why)
}
