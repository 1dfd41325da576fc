package constraint

import (
	"strings"
	"unsafe"

	"github.com/chandlery/chandlery/bundles"
)

const (
	constraintBytes = int64(unsafe.Sizeof(Constraint{}))
	gvkBytes        = int64(unsafe.Sizeof(bundles.GVK{}))
	rangeBytes      = int64(unsafe.Sizeof(PackageRange{}))
	// comparisonBytes is the memory of the functions for each comparison in a range of versions.
	comparisonBytes = 150
)

// bytes returns an estimate of the memory of a constraint, without its rules, which others may share.
func (c *Constraint) bytes() int64 {
	size := constraintBytes + text(c.FailureMessage) + text(c.Label)
	if c.GVK != nil {
		size += gvkBytes + text(c.GVK.Group) + text(c.GVK.Version) + text(c.GVK.Kind)
	}
	if c.Package != nil {
		size += rangeBytes + text(c.Package.Name) + text(c.Package.Range) + comparisonBytes*comparisons(c.Package.Range)
	}
	for _, list := range [][]Constraint{c.All, c.Any, c.Not} {
		for i := range list {
			size += list[i].bytes()
		}
	}
	return size
}

// text returns the memory of a text, which is a multiple of eight.
func text(s string) int64 {
	const word = 8
	return int64(len(s)+word-1) / word * word
}

// comparisons returns the number of comparisons in a range, by its versions.
func comparisons(text string) int64 {
	versions := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" |<>=!", r) })
	return int64(len(versions))
}
