// Package nodepull tests bundle images that only nodes can pull, on real nodes. The nodes have a mirror for the registry
// in the names of all images. The supervisors have no settings, and the registry does not exist.
package nodepull
