package examples

import (
	"embed"
	"io/fs"
)

//go:embed bundles
var bundles embed.FS

// Bundles returns the tree of the sample operators: PACKAGE/catalog.yaml and
// PACKAGE/VERSION/, which is the directory of a bundle.
func Bundles() fs.FS {
	tree, err := fs.Sub(bundles, "bundles")
	if err != nil { // the name is a constant that fs.Sub accepts
		return bundles
	}
	return tree
}
