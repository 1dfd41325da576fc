// Package catalogimage makes the image of a catalog and pushes it, without a container engine: the
// content, a prebuilt index for our registry and a cache for opm, labels as opm's images have
// them, and a list of what the catalog consists of. The same catalog and the same base give the
// same image.
package catalogimage
