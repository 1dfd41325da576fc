// Package server is the registry server. It serves a catalog over gRPC, keeps it up to date with
// its source, and reports its state through health checks, logs and metrics.
//
// The port is open from the beginning. Until the catalog is loaded, health checks return
// NOT_SERVING and RPCs fail with Unavailable. The server never returns an empty answer that a
// client could take for an empty catalog.
package server
