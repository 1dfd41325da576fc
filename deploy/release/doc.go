// Package release makes the files of a release, and verifies them as a user would: images, chart, manifests, archives
// of the kubectl plugin, SBOMs, checksums, provenance and signatures. The same commit, built with the same Go version,
// produces the same files on every machine, except signatures and provenance.
package release
