// Package wire is what the benchmark, as a client, and the floor, the fastest
// server that it measures others against, have in common: a codec that neither
// encodes nor decodes, and recordings of calls.
package wire
