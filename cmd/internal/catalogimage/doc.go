// Package catalogimage builds the image of a catalog and pushes it, without a container engine. The
// image holds the content, a prebuilt index for our registry and a cache for opm. It has the labels
// of opm's images and an SBOM of the catalog. The same catalog and the same base produce the same
// image.
package catalogimage
