//go:build !unix

package bundleimage

import "io/fs"

// isOurs returns true: the file system does not record the owner.
func isOurs(fs.FileInfo) bool { return true }
