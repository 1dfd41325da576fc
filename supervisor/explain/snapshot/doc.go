// Package snapshot reads the inputs of package explain. It needs only read permissions. It records what it
// could not read.
package snapshot
