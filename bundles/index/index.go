package index

import (
	"cmp"
	"fmt"
	"iter"
	"sync/atomic"
	"unsafe"

	"github.com/chandlery/chandlery/bundles"
)

// Index answers the queries of the api.Registry contract. It never changes and is safe for
// concurrent use. Its memory is released when neither the index nor any [Message] of it is
// referenced.
type Index struct {
	mapping      *mapping
	tables       [sectionCount]table
	dataEnd      uint64
	size         int64
	stats        Stats
	digest       string
	sourceDigest string
	// listsIntact is set after all data of lists was found intact.
	listsIntact atomic.Bool
}

// Stats are the sizes of an index.
type Stats struct {
	Packages int
	Channels int
	// Bundles counts each bundle once. Entries counts it once for each of its channels.
	Bundles int
	Entries int
	// Bytes is the size of all encoded messages. Shared parts count once.
	Bytes int64
}

// Info describes an index.
type Info struct {
	Stats

	// ContentDigest is the SHA-256, in hex, of everything in the answers of the index.
	ContentDigest string
	// SourceDigest identifies the source of the index, as its creator defines; empty if not set.
	SourceDigest string
	// Format is the version of the file's format.
	Format int
	// FileBytes is the size of the file.
	FileBytes int64
}

// NotFoundError means that the catalog lacks the requested object.
type NotFoundError struct {
	// Message has the wording that clients of catalogs know.
	Message string
}

// Error returns the message.
func (e *NotFoundError) Error() string { return e.Message }

func notFound(format string, args ...any) error {
	return &NotFoundError{Message: fmt.Sprintf(format, args...)}
}

// Stats returns the sizes of the index.
func (x *Index) Stats() Stats { return x.stats }

// Digest returns the SHA-256, in hex, of everything in the answers of the index. Two indexes with
// the same digest return the same answers.
func (x *Index) Digest() string { return x.digest }

// Info returns the description of the index.
func (x *Index) Info() Info {
	return Info{
		Stats: x.stats, ContentDigest: x.digest, SourceDigest: x.sourceDigest,
		Format: formatVersion, FileBytes: x.size,
	}
}

// Packages returns the answers of ListPackages, by package name. It ends early if the index is
// damaged; call [Index.Check] first to find damage.
func (x *Index) Packages() iter.Seq[Message] {
	return func(yield func(Message) bool) {
		t := x.tables[sectionPackages]
		for row := range uint32(t.len()) { //nolint:gosec // rows are counted in 32 bits
			message, err := x.message(t.place(row, packageListed))
			if err != nil || !yield(message) {
				return
			}
		}
	}
}

// Bundles returns the answers of ListBundles, by channel, package and bundle name. Bundles with an
// image have no manifests. It ends early if the index is damaged; call [Index.CheckLists] first to
// find damage.
func (x *Index) Bundles() iter.Seq[Message] {
	return func(yield func(Message) bool) {
		t := x.tables[sectionListed]
		for row := range uint32(t.len()) { //nolint:gosec // rows are counted in 32 bits
			message, err := x.listedEntry(t.u32(row, 0))
			if err != nil || !yield(message) {
				return
			}
		}
	}
}

// CheckLists returns [ErrDamaged] unless [Index.Packages], [Index.Bundles] and [Index.Summaries]
// will return everything. It reads the data of these lists.
func (x *Index) CheckLists() error {
	if x.listsIntact.Load() {
		return nil
	}
	for _, f := range []reference{
		{sectionPackages, packageListed}, {sectionPackages, packageSummary}, {sectionEntries, entryMessage}, {sectionBundles, bundleShared},
	} {
		t := x.tables[f.from]
		for row := range uint32(t.len()) { //nolint:gosec // rows are counted in 32 bits
			if err := x.check(t.place(row, f.field)); err != nil {
				return err
			}
		}
	}
	t := x.tables[sectionBundles]
	for row := range uint32(t.len()) { //nolint:gosec // rows are counted in 32 bits
		if t.u32(row, bundleInline) == 0 {
			continue
		}
		if err := x.checkParts(t.rowsOf(row, bundlePayload)); err != nil {
			return err
		}
	}
	x.listsIntact.Store(true)
	return nil
}

func (x *Index) checkParts(parts rowRange) error {
	for i := range parts.count {
		if err := x.check(x.tables[sectionParts].place(parts.first+i, 0)); err != nil {
			return err
		}
	}
	return nil
}

// Package returns the answer of GetPackage.
func (x *Index) Package(name string) (Message, error) {
	row, ok := x.packageRow(name)
	if !ok {
		return Message{}, notFound("package %q not found", name)
	}
	return x.message(x.tables[sectionPackages].place(row, packageReply))
}

// Bundle returns the answer of GetBundle.
func (x *Index) Bundle(pkg, channel, name string) (Message, error) {
	ch, err := x.channelRow(pkg, channel)
	if err != nil {
		return Message{}, err
	}
	row, ok := x.search(sectionEntries, x.tables[sectionChannels].rowsOf(ch, channelEntries), name)
	if !ok {
		return Message{}, notFound("package %q, channel %q, bundle %q not found", pkg, channel, name)
	}
	return x.fullEntry(row)
}

// ChannelHead returns the answer of GetBundleForChannel.
func (x *Index) ChannelHead(pkg, channel string) (Message, error) {
	ch, err := x.channelRow(pkg, channel)
	if err != nil {
		return Message{}, err
	}
	return x.fullEntry(x.tables[sectionChannels].u32(ch, channelHead))
}

// Replacement returns the answer of GetBundleThatReplaces. If several bundles replace or skip the
// named one, it returns the first in byte order.
func (x *Index) Replacement(name, pkg, channel string) (Message, error) {
	// Existing servers return this text without quotes.
	if _, ok := x.packageRow(pkg); !ok {
		return Message{}, notFound("package %s not found", pkg)
	}
	ch, err := x.channelRow(pkg, channel)
	if err != nil {
		return Message{}, err
	}
	by := x.replacedBy(name)
	postings, entries := x.tables[sectionPostings], x.tables[sectionEntries]
	for i := range by.count {
		if row := postings.u32(by.first+i, 0); entries.u32(row, entryChannel) == ch {
			return x.fullEntry(row)
		}
	}
	return Message{}, notFound("no entry found for package %q, channel %q", pkg, channel)
}

// EntriesThatReplace returns the answers of GetChannelEntriesThatReplace.
func (x *Index) EntriesThatReplace(name string) (iter.Seq[Message], error) {
	by := x.replacedBy(name)
	if by.count == 0 {
		return nil, notFound("no channel entries found that replace %s", name)
	}
	first := func(row uint32) rowRange {
		edges := x.tables[sectionEntries].rowsOf(row, entryEdges)
		return rowRange{first: edges.first, count: min(edges.count, 1)}
	}
	return x.edges(by, first)
}

// EntriesThatProvide returns the answers of GetChannelEntriesThatProvide: for each entry one with
// the replaced bundle and one with each skipped bundle.
func (x *Index) EntriesThatProvide(api bundles.GVK) (iter.Seq[Message], error) {
	row, ok := x.apiRow(api)
	if !ok {
		return nil, notProvided(api)
	}
	all := func(row uint32) rowRange { return x.tables[sectionEntries].rowsOf(row, entryEdges) }
	return x.edges(x.tables[sectionAPIs].rowsOf(row, apiAll), all)
}

// LatestEntriesThatProvide returns the answers of GetLatestChannelEntriesThatProvide: like
// [Index.EntriesThatProvide], but only for heads of channels and for skipped bundles of the same
// channel.
func (x *Index) LatestEntriesThatProvide(api bundles.GVK) (iter.Seq[Message], error) {
	row, ok := x.apiRow(api)
	if !ok || x.tables[sectionAPIs].rowsOf(row, apiLatest).count == 0 {
		return nil, notProvided(api)
	}
	inner := func(row uint32) rowRange { return x.tables[sectionEntries].rowsOf(row, entryInnerEdges) }
	return x.edges(x.tables[sectionAPIs].rowsOf(row, apiLatest), inner)
}

// DefaultProvider returns the answer of GetDefaultBundleThatProvides: the head
// of a default channel, of the first package in byte order.
func (x *Index) DefaultProvider(api bundles.GVK) (Message, error) {
	row, ok := x.apiRow(api)
	if !ok || x.tables[sectionAPIs].rowsOf(row, apiLatest).count == 0 {
		return Message{}, notProvided(api)
	}
	entry := x.tables[sectionAPIs].u32(row, apiDefault)
	if entry == none {
		return Message{}, notFound("no entry found that provides group:%q version:%q kind:%q", api.Group, api.Version, api.Kind)
	}
	return x.fullEntry(entry)
}

// Custom returns the objects of a custom schema, each as an encoded google.protobuf.Struct. An
// empty package stands for objects without one.
func (x *Index) Custom(schema, pkg string) (iter.Seq[Message], error) {
	row, ok := x.customRow(schema, pkg)
	if !ok {
		return func(func(Message) bool) {}, nil
	}
	parts := x.tables[sectionCustom].rowsOf(row, customParts)
	if err := x.checkParts(parts); err != nil {
		return nil, err
	}
	return x.messages(parts), nil
}

func notProvided(api bundles.GVK) error {
	return notFound("no channel entries found that provide group:%q version:%q kind:%q", api.Group, api.Version, api.Kind)
}

// edges returns the messages of entries. of returns the messages of an entry.
func (x *Index) edges(postings rowRange, of func(row uint32) rowRange) (iter.Seq[Message], error) {
	t := x.tables[sectionPostings]
	for i := range postings.count {
		if err := x.checkParts(of(t.u32(postings.first+i, 0))); err != nil {
			return nil, err
		}
	}
	return func(yield func(Message) bool) {
		for i := range postings.count {
			for message := range x.messages(of(t.u32(postings.first+i, 0))) {
				if !yield(message) {
					return
				}
			}
		}
	}, nil
}

// messages returns checked messages that have one part each.
func (x *Index) messages(parts rowRange) iter.Seq[Message] {
	return func(yield func(Message) bool) {
		for i := range parts.count {
			message, err := x.message(x.tables[sectionParts].place(parts.first+i, 0))
			if err != nil || !yield(message) {
				return
			}
		}
	}
}

// message returns a message that is stored in one piece.
func (x *Index) message(at place) (Message, error) {
	if err := x.check(at); err != nil {
		return Message{}, err
	}
	return Message{owner: x.mapping, small: [2][]byte{x.bytes(at)}}, nil
}

// bytes returns checked data.
func (x *Index) bytes(at place) []byte { return x.mapping.bytes[at.offset:at.end():at.end()] }

// fullEntry returns a bundle in the form of the unary RPCs: with its manifests and without its
// position in the graph.
func (x *Index) fullEntry(row uint32) (Message, error) {
	message := x.tables[sectionEntries].place(row, entryMessage)
	message.length = x.tables[sectionEntries].u32(row, entryUnary)
	return x.entry(row, message, true)
}

// listedEntry returns a bundle in the form of ListBundles: with its position in the graph, and with
// its manifests only if it has no image.
func (x *Index) listedEntry(row uint32) (Message, error) {
	bundle := x.tables[sectionEntries].u32(row, entryBundle)
	inline := x.tables[sectionBundles].u32(bundle, bundleInline) != 0
	return x.entry(row, x.tables[sectionEntries].place(row, entryMessage), inline)
}

func (x *Index) entry(row uint32, message place, withPayload bool) (Message, error) {
	bundle := x.tables[sectionEntries].u32(row, entryBundle)
	facts := x.tables[sectionBundles].place(bundle, bundleShared)
	if err := x.check(message); err != nil {
		return Message{}, err
	}
	if err := x.check(facts); err != nil {
		return Message{}, err
	}
	out := Message{owner: x.mapping, small: [2][]byte{x.bytes(message), x.bytes(facts)}}
	if !withPayload {
		return out, nil
	}
	payload := x.tables[sectionBundles].rowsOf(bundle, bundlePayload)
	out.large = make([][]byte, payload.count)
	for i := range payload.count {
		at := x.tables[sectionParts].place(payload.first+i, 0)
		if err := x.check(at); err != nil {
			return Message{}, err
		}
		out.large[i] = x.bytes(at)
	}
	return out, nil
}

// name returns the name in a row. It refers to the mapping.
func (x *Index) name(id sectionID, row uint32, field int) string {
	at := x.tables[id].rowsOf(row, field)
	if at.count == 0 {
		return ""
	}
	//nolint:gosec // opening made sure that it lies inside, and nobody writes to an index
	return unsafe.String(&x.tables[sectionStrings].rows[at.first], at.count)
}

// search finds a name among some rows, which are sorted by name. The name is the first field of a row.
func (x *Index) search(id sectionID, rows rowRange, name string) (uint32, bool) {
	return find(rows, func(row uint32) int { return cmp.Compare(name, x.name(id, row, 0)) })
}

// find returns the row among some for which compare returns 0.
func find(rows rowRange, compare func(row uint32) int) (uint32, bool) {
	at := firstRow(rows, func(row uint32) bool { return compare(row) <= 0 })
	return at, at < rows.first+rows.count && compare(at) == 0
}

// firstRow returns the first row in a range for which holds is true, or the end of the range. If
// holds is true for a row, it must be true for all later ones.
func firstRow(rows rowRange, holds func(row uint32) bool) uint32 {
	low, high := rows.first, rows.first+rows.count
	for low < high {
		if middle := low + (high-low)/2; holds(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// all returns the rows of a table.
func (x *Index) all(id sectionID) rowRange {
	return rowRange{count: uint32(x.tables[id].len())} //nolint:gosec // rows are counted in 32 bits
}

func (x *Index) packageRow(name string) (uint32, bool) {
	return x.search(sectionPackages, x.all(sectionPackages), name)
}

func (x *Index) channelRow(pkg, channel string) (uint32, error) {
	p, ok := x.packageRow(pkg)
	if !ok {
		return 0, notFound("package %q not found", pkg)
	}
	ch, ok := x.search(sectionChannels, x.tables[sectionPackages].rowsOf(p, packageChannels), channel)
	if !ok {
		return 0, notFound("package %q, channel %q not found", pkg, channel)
	}
	return ch, nil
}

func (x *Index) replacedBy(name string) rowRange {
	row, ok := x.search(sectionReplaced, x.all(sectionReplaced), name)
	if !ok {
		return rowRange{}
	}
	return x.tables[sectionReplaced].rowsOf(row, replacedBy)
}

func (x *Index) apiRow(api bundles.GVK) (uint32, bool) {
	return find(x.all(sectionAPIs), func(row uint32) int {
		return compareAPIs(api, bundles.GVK{
			Group: x.name(sectionAPIs, row, apiGroup), Version: x.name(sectionAPIs, row, apiVersion),
			Kind: x.name(sectionAPIs, row, apiKind),
		})
	})
}

func (x *Index) customRow(schema, pkg string) (uint32, bool) {
	return find(x.all(sectionCustom), func(row uint32) int {
		return cmp.Or(
			cmp.Compare(schema, x.name(sectionCustom, row, customSchema)),
			cmp.Compare(pkg, x.name(sectionCustom, row, customPackage)))
	})
}
