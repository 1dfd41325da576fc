// Package bundleimage pulls bundle images and reads their manifests: asynchronously and with progress for
// planning, on demand for execution.
//
// Content is cached on disk by the digest of its image and pulled once for all namespaces. The registry must
// authorize each request with the credentials of its own namespace before the content is returned, even if it
// is already cached.
package bundleimage
