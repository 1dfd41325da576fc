// Package server is the registry server: it serves a catalog over gRPC, keeps
// it up to date with the directory it comes from, and tells through health,
// logs and metrics how it fares.
//
// The port is open from the beginning. Until the catalog is loaded health
// checks say NOT_SERVING and RPCs fail with Unavailable; never is there an
// empty answer that a client could take for an empty catalog.
package server
