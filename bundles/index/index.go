package index

import (
	"cmp"
	"fmt"
	"iter"
	"sync/atomic"
	"unsafe"

	"github.com/chandlery/chandlery/bundles"
)

// Index answers the queries of the api.Registry contract. It never changes and
// may be used from any number of goroutines. What it is made of is given back
// when nothing refers to it any more, nor to a [Message] of it.
type Index struct {
	mapping      *mapping
	tables       [sectionCount]table
	dataEnd      uint64
	size         int64
	stats        Stats
	digest       string
	sourceDigest string
	// listsIntact is set once everything that lists are made of was found intact.
	listsIntact atomic.Bool
}

// Stats says how much an index holds.
type Stats struct {
	Packages int
	Channels int
	// Bundles counts each bundle once, Entries once for each of its channels.
	Bundles int
	Entries int
	// Bytes is the size of all encoded messages, with what they share counted
	// once.
	Bytes int64
}

// Info says what an index is.
type Info struct {
	Stats

	// ContentDigest is the SHA-256, in hex, of everything the index answers.
	ContentDigest string
	// SourceDigest stands for what the index was made of, as its maker defined;
	// empty when it has not.
	SourceDigest string
	// Format is the version of the file's format.
	Format int
	// FileBytes is the size of the file.
	FileBytes int64
}

// NotFoundError says that the catalog does not hold what was asked for.
type NotFoundError struct {
	// Message is worded as clients of catalogs know it.
	Message string
}

// Error returns the message.
func (e *NotFoundError) Error() string { return e.Message }

func notFound(format string, args ...any) error {
	return &NotFoundError{Message: fmt.Sprintf(format, args...)}
}

// Stats returns how much the index holds.
func (x *Index) Stats() Stats { return x.stats }

// Digest returns the SHA-256, in hex, of everything the index answers. Two
// indexes with the same digest give the same answers.
func (x *Index) Digest() string { return x.digest }

// Info returns what the index is.
func (x *Index) Info() Info {
	return Info{
		Stats: x.stats, ContentDigest: x.digest, SourceDigest: x.sourceDigest,
		Format: formatVersion, FileBytes: x.size,
	}
}

// Packages returns the answers of ListPackages, by package name. It ends early
// where the index is damaged; [Index.Check] tells beforehand.
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

// Bundles returns the answers of ListBundles, by channel, package and bundle
// name. Bundles with an image come without their manifests. It ends early
// where the index is damaged; [Index.CheckLists] tells beforehand.
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

// CheckLists makes sure that [Index.Packages], [Index.Bundles] and
// [Index.Summaries] will return everything; it returns [ErrDamaged] if not. It reads what they would.
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

// Replacement returns the answer of GetBundleThatReplaces: of several bundles
// that replace or skip the named one, the first in byte order.
func (x *Index) Replacement(name, pkg, channel string) (Message, error) {
	// This one text has always come without quotes.
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

// EntriesThatProvide returns the answers of GetChannelEntriesThatProvide: for
// each entry one with what it replaces and one with each bundle that it skips.
func (x *Index) EntriesThatProvide(api bundles.GVK) (iter.Seq[Message], error) {
	row, ok := x.apiRow(api)
	if !ok {
		return nil, notProvided(api)
	}
	all := func(row uint32) rowRange { return x.tables[sectionEntries].rowsOf(row, entryEdges) }
	return x.edges(x.tables[sectionAPIs].rowsOf(row, apiAll), all)
}

// LatestEntriesThatProvide returns the answers of
// GetLatestChannelEntriesThatProvide: as [Index.EntriesThatProvide], for heads
// of channels and for skipped bundles of the same channel only.
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

// Custom returns the objects of a schema of the catalog's own, each as an
// encoded google.protobuf.Struct. An empty package stands for objects without
// one.
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

// edges returns the messages of entries, each of which has those that of says.
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

// messages returns messages that have one part each, and have been checked.
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

// message returns a message that lies in one piece.
func (x *Index) message(at place) (Message, error) {
	if err := x.check(at); err != nil {
		return Message{}, err
	}
	return Message{owner: x.mapping, small: [2][]byte{x.bytes(at)}}, nil
}

// bytes returns data that has been checked.
func (x *Index) bytes(at place) []byte { return x.mapping.bytes[at.offset:at.end():at.end()] }

// fullEntry returns a bundle with its manifests and without its place in the
// graph, as the unary RPCs answer.
func (x *Index) fullEntry(row uint32) (Message, error) {
	message := x.tables[sectionEntries].place(row, entryMessage)
	message.length = x.tables[sectionEntries].u32(row, entryUnary)
	return x.entry(row, message, true)
}

// listedEntry returns a bundle as ListBundles answers: with its place in the
// graph, and with its manifests only when it has no image.
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

// name returns a name that a row holds. It is part of the mapping.
func (x *Index) name(id sectionID, row uint32, field int) string {
	at := x.tables[id].rowsOf(row, field)
	if at.count == 0 {
		return ""
	}
	//nolint:gosec // opening made sure that it lies inside, and nobody writes to an index
	return unsafe.String(&x.tables[sectionStrings].rows[at.first], at.count)
}

// search finds a name among some rows, which are in byte order of it. The name
// of a row is its first field.
func (x *Index) search(id sectionID, rows rowRange, name string) (uint32, bool) {
	return find(rows, func(row uint32) int { return cmp.Compare(name, x.name(id, row, 0)) })
}

// find returns the row among some for which compare returns 0.
func find(rows rowRange, compare func(row uint32) int) (uint32, bool) {
	at := firstRow(rows, func(row uint32) bool { return compare(row) <= 0 })
	return at, at < rows.first+rows.count && compare(at) == 0
}

// firstRow returns the first row among some for which something holds, which
// then holds for all behind it, or the row behind the last.
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
