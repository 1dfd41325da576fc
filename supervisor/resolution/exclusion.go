package resolution

import (
	"slices"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolution/sat"
)

// exclude adds the exclusions: between two versions of a package, and between two providers of an API. Present
// operators are facts, so there are no exclusions between them.
func (p *satProblem) exclude(ops *operators) {
	var entries []node
	packages := map[string][]node{}
	var order []string
	for _, n := range p.ordered() {
		if n.operator != nil {
			continue
		}
		entries = append(entries, n)
		if packages[n.pkg()] == nil {
			order = append(order, n.pkg())
		}
		packages[n.pkg()] = append(packages[n.pkg()], n)
		for _, present := range ops.conflicting(n) {
			p.add(sat.Constraint{Kind: sat.Conflict, Variable: p.ids[present], Others: []sat.ID{p.ids[n]}},
				reason{kind: exclusive, node: present, other: n})
		}
	}
	for _, pkg := range order {
		p.atMostOne(packages[pkg], reason{kind: onePackage, pkg: pkg})
	}
	p.excludeProviders(entries)
}

// excludeProviders adds a constraint that each API has at most one provider. Only APIs of several packages
// matter. Versions of a package usually share the list of their APIs, which is then read once.
func (p *satProblem) excludeProviders(entries []node) {
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
		p.atMostOne(providers[gvk], reason{kind: oneAPI, gvk: gvk})
	}
}

// apis identifies a list of APIs without comparing its elements: equal lists are usually the same slice.
type apis struct {
	first *bundles.GVK
	count int
}

func apisOf(list []bundles.GVK) apis { return apis{first: &list[0], count: len(list)} }

// sharedAPIs returns the APIs that entries of several packages provide.
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

func (p *satProblem) atMostOne(nodes []node, why reason) {
	if len(nodes) < 2 {
		return
	}
	ids := make([]sat.ID, len(nodes))
	for i, n := range nodes {
		ids[i] = p.ids[n]
	}
	p.add(sat.Constraint{Kind: sat.AtMost, Limit: 1, Others: ids}, why)
}
