package index

import (
	"iter"

	"github.com/chandlery/chandlery/bundles"
)

// registryQueries answers the queries of the api.Registry contract.
type registryQueries struct{ rowFinder }

// Packages returns the answers of ListPackages, by package name. It ends early if the index is
// damaged; call [Index.Check] first to find damage.
func (q registryQueries) Packages() iter.Seq[Message] {
	return func(yield func(Message) bool) {
		t := q.tables[sectionPackages]
		for row := range uint32(t.len()) { //nolint:gosec // rows are counted in 32 bits
			message, err := q.message(t.place(row, packageListed))
			if err != nil || !yield(message) {
				return
			}
		}
	}
}

// Bundles returns the answers of ListBundles, by channel, package and bundle name. Bundles with an
// image have no manifests. It ends early if the index is damaged; call [Index.CheckLists] first to
// find damage.
func (q registryQueries) Bundles() iter.Seq[Message] {
	return func(yield func(Message) bool) {
		t := q.tables[sectionListed]
		for row := range uint32(t.len()) { //nolint:gosec // rows are counted in 32 bits
			message, err := q.listedEntry(t.u32(row, 0))
			if err != nil || !yield(message) {
				return
			}
		}
	}
}

// Package returns the answer of GetPackage.
func (q registryQueries) Package(name string) (Message, error) {
	row, ok := q.packageRow(name)
	if !ok {
		return Message{}, notFound("package %q not found", name)
	}
	return q.message(q.tables[sectionPackages].place(row, packageReply))
}

// Bundle returns the answer of GetBundle.
func (q registryQueries) Bundle(pkg, channel, name string) (Message, error) {
	ch, err := q.channelRow(pkg, channel)
	if err != nil {
		return Message{}, err
	}
	row, ok := q.search(sectionEntries, q.tables[sectionChannels].rowsOf(ch, channelEntries), name)
	if !ok {
		return Message{}, notFound("package %q, channel %q, bundle %q not found", pkg, channel, name)
	}
	return q.fullEntry(row)
}

// ChannelHead returns the answer of GetBundleForChannel.
func (q registryQueries) ChannelHead(pkg, channel string) (Message, error) {
	ch, err := q.channelRow(pkg, channel)
	if err != nil {
		return Message{}, err
	}
	return q.fullEntry(q.tables[sectionChannels].u32(ch, channelHead))
}

// Replacement returns the answer of GetBundleThatReplaces. If several bundles replace or skip the
// named one, it returns the first in byte order.
func (q registryQueries) Replacement(name, pkg, channel string) (Message, error) {
	// Existing servers return this text without quotes.
	if _, ok := q.packageRow(pkg); !ok {
		return Message{}, notFound("package %s not found", pkg)
	}
	ch, err := q.channelRow(pkg, channel)
	if err != nil {
		return Message{}, err
	}
	by := q.replacedBy(name)
	postings, entries := q.tables[sectionPostings], q.tables[sectionEntries]
	for i := range by.count {
		if row := postings.u32(by.first+i, 0); entries.u32(row, entryChannel) == ch {
			return q.fullEntry(row)
		}
	}
	return Message{}, notFound("no entry found for package %q, channel %q", pkg, channel)
}

// EntriesThatReplace returns the answers of GetChannelEntriesThatReplace.
func (q registryQueries) EntriesThatReplace(name string) (iter.Seq[Message], error) {
	by := q.replacedBy(name)
	if by.count == 0 {
		return nil, notFound("no channel entries found that replace %s", name)
	}
	first := func(row uint32) rowRange {
		edges := q.tables[sectionEntries].rowsOf(row, entryEdges)
		return rowRange{first: edges.first, count: min(edges.count, 1)}
	}
	return q.edges(by, first)
}

// EntriesThatProvide returns the answers of GetChannelEntriesThatProvide: for each entry one with
// the replaced bundle and one with each skipped bundle.
func (q registryQueries) EntriesThatProvide(api bundles.GVK) (iter.Seq[Message], error) {
	row, ok := q.apiRow(api)
	if !ok {
		return nil, notProvided(api)
	}
	all := func(row uint32) rowRange { return q.tables[sectionEntries].rowsOf(row, entryEdges) }
	return q.edges(q.tables[sectionAPIs].rowsOf(row, apiAll), all)
}

// LatestEntriesThatProvide returns the answers of GetLatestChannelEntriesThatProvide: like
// [Index.EntriesThatProvide], but only for heads of channels and for skipped bundles of the same
// channel.
func (q registryQueries) LatestEntriesThatProvide(api bundles.GVK) (iter.Seq[Message], error) {
	row, ok := q.apiRow(api)
	if !ok || q.tables[sectionAPIs].rowsOf(row, apiLatest).count == 0 {
		return nil, notProvided(api)
	}
	inner := func(row uint32) rowRange { return q.tables[sectionEntries].rowsOf(row, entryInnerEdges) }
	return q.edges(q.tables[sectionAPIs].rowsOf(row, apiLatest), inner)
}

// DefaultProvider returns the answer of GetDefaultBundleThatProvides: the head
// of a default channel, of the first package in byte order.
func (q registryQueries) DefaultProvider(api bundles.GVK) (Message, error) {
	row, ok := q.apiRow(api)
	if !ok || q.tables[sectionAPIs].rowsOf(row, apiLatest).count == 0 {
		return Message{}, notProvided(api)
	}
	entry := q.tables[sectionAPIs].u32(row, apiDefault)
	if entry == none {
		return Message{}, notFound("no entry found that provides group:%q version:%q kind:%q", api.Group, api.Version, api.Kind)
	}
	return q.fullEntry(entry)
}

// Custom returns the objects of a custom schema, each as an encoded google.protobuf.Struct. An
// empty package stands for objects without one.
func (q registryQueries) Custom(schema, pkg string) (iter.Seq[Message], error) {
	row, ok := q.customRow(schema, pkg)
	if !ok {
		return func(func(Message) bool) {}, nil
	}
	parts := q.tables[sectionCustom].rowsOf(row, customParts)
	if err := q.checkParts(parts); err != nil {
		return nil, err
	}
	return q.messages(parts), nil
}

func notProvided(api bundles.GVK) error {
	return notFound("no channel entries found that provide group:%q version:%q kind:%q", api.Group, api.Version, api.Kind)
}

// edges returns the messages of entries. of returns the messages of an entry.
func (q registryQueries) edges(postings rowRange, of func(row uint32) rowRange) (iter.Seq[Message], error) {
	t := q.tables[sectionPostings]
	for i := range postings.count {
		if err := q.checkParts(of(t.u32(postings.first+i, 0))); err != nil {
			return nil, err
		}
	}
	return func(yield func(Message) bool) {
		for i := range postings.count {
			for message := range q.messages(of(t.u32(postings.first+i, 0))) {
				if !yield(message) {
					return
				}
			}
		}
	}, nil
}
