// Package images builds the OCI images of the programs of this repository. It needs no container
// engine and pulls nothing. An image holds one static program, the certificates of the authorities
// that browsers trust, and the few files that programs look for in a file system. The same commit,
// built with the same Go version, produces the same digests on every machine.
package images
