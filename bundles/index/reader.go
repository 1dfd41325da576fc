package index

import (
	"cmp"
	"iter"
	"sync/atomic"
	"unsafe"

	"github.com/chandlery/chandlery/bundles"
)

// reader reads the tables and the data of an index.
type reader struct {
	mapping *mapping
	tables  [sectionCount]table
	dataEnd uint64
	// listsIntact is set after all data of lists was found intact.
	listsIntact atomic.Bool
}

// messages returns checked messages that have one part each.
func (r *reader) messages(parts rowRange) iter.Seq[Message] {
	return func(yield func(Message) bool) {
		for i := range parts.count {
			message, err := r.message(r.tables[sectionParts].place(parts.first+i, 0))
			if err != nil || !yield(message) {
				return
			}
		}
	}
}

// message returns a message that is stored in one piece.
func (r *reader) message(at place) (Message, error) {
	if err := r.check(at); err != nil {
		return Message{}, err
	}
	return Message{owner: r.mapping, small: [2][]byte{r.bytes(at)}}, nil
}

// bytes returns checked data.
func (r *reader) bytes(at place) []byte { return r.mapping.bytes[at.offset:at.end():at.end()] }

// fullEntry returns a bundle in the form of the unary RPCs: with its manifests and without its
// position in the graph.
func (r *reader) fullEntry(row uint32) (Message, error) {
	message := r.tables[sectionEntries].place(row, entryMessage)
	message.length = r.tables[sectionEntries].u32(row, entryUnary)
	return r.entry(row, message, true)
}

// listedEntry returns a bundle in the form of ListBundles: with its position in the graph, and with
// its manifests only if it has no image.
func (r *reader) listedEntry(row uint32) (Message, error) {
	bundle := r.tables[sectionEntries].u32(row, entryBundle)
	inline := r.tables[sectionBundles].u32(bundle, bundleInline) != 0
	return r.entry(row, r.tables[sectionEntries].place(row, entryMessage), inline)
}

func (r *reader) entry(row uint32, message place, withPayload bool) (Message, error) {
	bundle := r.tables[sectionEntries].u32(row, entryBundle)
	facts := r.tables[sectionBundles].place(bundle, bundleShared)
	if err := r.check(message); err != nil {
		return Message{}, err
	}
	if err := r.check(facts); err != nil {
		return Message{}, err
	}
	out := Message{owner: r.mapping, small: [2][]byte{r.bytes(message), r.bytes(facts)}}
	if !withPayload {
		return out, nil
	}
	payload := r.tables[sectionBundles].rowsOf(bundle, bundlePayload)
	out.large = make([][]byte, payload.count)
	for i := range payload.count {
		at := r.tables[sectionParts].place(payload.first+i, 0)
		if err := r.check(at); err != nil {
			return Message{}, err
		}
		out.large[i] = r.bytes(at)
	}
	return out, nil
}

// name returns the name in a row. It refers to the mapping.
func (r *reader) name(id sectionID, row uint32, field int) string {
	at := r.tables[id].rowsOf(row, field)
	if at.count == 0 {
		return ""
	}
	//nolint:gosec // opening made sure that it lies inside, and an index is read-only
	return unsafe.String(&r.tables[sectionStrings].rows[at.first], at.count)
}

// search finds a name among some rows, which are sorted by name. The name is the first field of a row.
func (r *reader) search(id sectionID, rows rowRange, name string) (uint32, bool) {
	return find(rows, func(row uint32) int { return cmp.Compare(name, r.name(id, row, 0)) })
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
func (r *reader) all(id sectionID) rowRange {
	return rowRange{count: uint32(r.tables[id].len())} //nolint:gosec // rows are counted in 32 bits
}

// rowFinder finds rows by the search keys of tables.
type rowFinder struct{ *reader }

func (f rowFinder) packageRow(name string) (uint32, bool) {
	return f.search(sectionPackages, f.all(sectionPackages), name)
}

func (f rowFinder) channelRow(pkg, channel string) (uint32, error) {
	p, ok := f.packageRow(pkg)
	if !ok {
		return 0, notFound("package %q not found", pkg)
	}
	ch, ok := f.search(sectionChannels, f.tables[sectionPackages].rowsOf(p, packageChannels), channel)
	if !ok {
		return 0, notFound("package %q, channel %q not found", pkg, channel)
	}
	return ch, nil
}

func (f rowFinder) replacedBy(name string) rowRange {
	row, ok := f.search(sectionReplaced, f.all(sectionReplaced), name)
	if !ok {
		return rowRange{}
	}
	return f.tables[sectionReplaced].rowsOf(row, replacedBy)
}

func (f rowFinder) apiRow(api bundles.GVK) (uint32, bool) {
	return find(f.all(sectionAPIs), func(row uint32) int {
		return compareAPIs(api, bundles.GVK{
			Group: f.name(sectionAPIs, row, apiGroup), Version: f.name(sectionAPIs, row, apiVersion),
			Kind: f.name(sectionAPIs, row, apiKind),
		})
	})
}

func (f rowFinder) customRow(schema, pkg string) (uint32, bool) {
	return find(f.all(sectionCustom), func(row uint32) int {
		return cmp.Or(
			cmp.Compare(schema, f.name(sectionCustom, row, customSchema)),
			cmp.Compare(pkg, f.name(sectionCustom, row, customPackage)))
	})
}
