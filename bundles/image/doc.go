// Package image is the edge at which content comes from OCI images: it finds
// out which digest a reference stands for and brings one directory of an image
// to the local file system, in process and without a container runtime.
//
// Everything that a registry sends is bounded and checked before it is used:
// sizes and numbers against [Limits], bytes against the digests that the
// manifest names, paths against the directory they are to be below. What is
// wrong comes back as an [*Error] that says which image and what kind of
// trouble.
package image
