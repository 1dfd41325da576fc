// Package images makes the OCI images of the programs of this repository, without
// a container engine and without pulling anything: one static program, the
// certificates of the authorities that browsers trust, and the little that
// programs look for in a file system. The same commit, built with the same Go,
// gives the same digests on every machine.
package images
