// Package image gets content from OCI images. It resolves references to digests and extracts one
// directory of an image to the local file system, in process and without a container runtime.
//
// Everything from a registry is limited and checked before use: sizes and numbers against [Limits],
// bytes against the digests in the manifest, and paths against their root directory. An error is an
// [*Error] with the image and a [Reason].
package image
