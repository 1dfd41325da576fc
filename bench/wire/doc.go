// Package wire holds what the benchmark client and the floor server have in common: a codec that
// neither encodes nor decodes, and recordings of calls.
package wire
