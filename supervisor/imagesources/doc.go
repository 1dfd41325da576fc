// Package imagesources decides how the supervisor pulls the images of a catalog: from which registries, and with
// which credentials.
package imagesources
