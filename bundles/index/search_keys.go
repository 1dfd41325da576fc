package index

import (
	"cmp"
	"maps"
	"slices"

	"github.com/chandlery/chandlery/bundles"
)

// searchKeys collects the entries by keys other than the names of packages, channels and bundles.
type searchKeys struct {
	apis     map[bundles.GVK]*providers
	replaced map[string][]uint32
	// custom holds the positions of the objects of each schema and package.
	custom map[customKey][]place
	// channels determine the order of ListBundles. Entries are written by package, channel and bundle.
	channels []listedChannel
}

// customKey is the search key of custom objects.
type customKey struct{ schema, pkg string }

// providers are the entries whose bundles provide an API.
type providers struct {
	all []uint32
	// latest are the entries in all that are the head of their channel.
	latest []uint32
	// standard is the first entry of latest in a default channel, or none.
	standard uint32
}

// listedChannel is a channel with its entries.
type listedChannel struct {
	name    string
	entries rowRange
}

func newSearchKeys() searchKeys {
	return searchKeys{
		apis: make(map[bundles.GVK]*providers), replaced: make(map[string][]uint32), custom: make(map[customKey][]place),
	}
}

func (k *searchKeys) addReplaced(e *encodedEntry, row uint32) {
	k.replaced[e.replaces] = append(k.replaced[e.replaces], row)
	for _, skipped := range e.skips {
		if skipped != e.replaces {
			k.replaced[skipped] = append(k.replaced[skipped], row)
		}
	}
}

func (k *searchKeys) addProvider(provided []bundles.GVK, row uint32, isHead, isDefault bool) {
	for i, gvk := range provided {
		if slices.Contains(provided[:i], gvk) {
			continue
		}
		p := k.apis[gvk]
		if p == nil {
			p = &providers{standard: none}
			k.apis[gvk] = p
		}
		p.all = append(p.all, row)
		if !isHead {
			continue
		}
		p.latest = append(p.latest, row)
		if isDefault && p.standard == none {
			p.standard = row
		}
	}
}

// write writes the tables of all search keys.
func (k *searchKeys) write(w *tableWriter) {
	slices.SortStableFunc(k.channels, func(a, b listedChannel) int { return cmp.Compare(a.name, b.name) })
	for _, ch := range k.channels {
		for i := range ch.entries.count {
			w.row(sectionListed, ch.entries.first+i)
		}
	}
	for _, gvk := range slices.SortedFunc(maps.Keys(k.apis), compareAPIs) {
		p := k.apis[gvk]
		all, latest := w.postings(p.all), w.postings(p.latest)
		for _, text := range []string{gvk.Group, gvk.Version, gvk.Kind} {
			w.row(sectionAPIs, w.strings.fields(text)...)
		}
		w.row(sectionAPIs, all.first, all.count, latest.first, latest.count, p.standard)
	}
	for _, name := range slices.Sorted(maps.Keys(k.replaced)) {
		by := w.postings(k.replaced[name])
		w.row(sectionReplaced, w.strings.fields(name)...)
		w.row(sectionReplaced, by.first, by.count)
	}
	k.writeCustom(w)
}

// writeCustom writes the table of custom objects.
func (k *searchKeys) writeCustom(w *tableWriter) {
	compare := func(a, b customKey) int { return cmp.Or(cmp.Compare(a.schema, b.schema), cmp.Compare(a.pkg, b.pkg)) }
	for _, key := range slices.SortedFunc(maps.Keys(k.custom), compare) {
		parts := w.parts(k.custom[key])
		w.row(sectionCustom, w.strings.fields(key.schema)...)
		w.row(sectionCustom, w.strings.fields(key.pkg)...)
		w.row(sectionCustom, parts.first, parts.count)
	}
}

func compareAPIs(a, b bundles.GVK) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Kind, b.Kind))
}
