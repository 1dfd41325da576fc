// Package dialproxy chooses the proxy for a gRPC connection to an address, and connects
// through it.
package dialproxy
