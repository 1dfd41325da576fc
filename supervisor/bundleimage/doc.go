// Package bundleimage brings the manifests of bundle images here: asynchronously for
// those who plan, with progress, and on demand for those who execute.
//
// Content is kept on disk by the digest of its image and is brought here once,
// however many namespaces ask for it. Whoever asks has to be let in by the
// registry with credentials of their own before they are given any, whether it is
// kept already or not.
package bundleimage
