package index

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"slices"
)

// Digest returns the SHA-256, in hex, of everything the index answers. Two
// indexes with the same digest give the same answers.
func (x *Index) Digest() string { return x.digest }

// sum digests what a package contributes. The manifests of a bundle count once,
// however many channels it is in.
func (b *builtPackage) sum(encoded map[string]*encodedBundle) []byte {
	h := sha256.New()
	writeCount(h, len(encoded))
	for _, name := range slices.Sorted(maps.Keys(encoded)) {
		writeSized(h, []byte(name))
		writeCount(h, len(encoded[name].payload))
		for _, part := range encoded[name].payload {
			writeSized(h, part)
		}
	}
	writeCount(h, len(b.entries))
	for _, e := range b.entries {
		writeSized(h, e.small)
	}
	writeCount(h, len(b.table.reply))
	for _, part := range b.table.reply {
		writeSized(h, part)
	}
	return h.Sum(nil)
}

// combine digests the packages' digests, which are in the order of the packages.
func combine(built []*builtPackage) string {
	h := sha256.New()
	for _, b := range built {
		h.Write(b.digest)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// writeSized keeps apart what would run together: a part is preceded by its
// length.
func writeSized(h hash.Hash, part []byte) {
	writeCount(h, len(part))
	h.Write(part)
}

// writeCount precedes a list, or the bytes of a part, by its length.
func writeCount(h hash.Hash, n int) {
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(max(0, n))))
}
