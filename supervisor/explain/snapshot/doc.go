// Package snapshot reads what package explain needs. It needs no more than the
// right to read, and where even that is missing it notes what it could not see.
package snapshot
