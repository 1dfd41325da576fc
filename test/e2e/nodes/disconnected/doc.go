// Package disconnected installs a release on real nodes that reach only a mirror: with one file of settings, and later with
// none and pulls by nodes. In the same cluster, it restarts and replaces the supervisors while a catalog is away, and rotates
// the certificates of a catalog.
//
// The registry of the nodes is the source of all images. A rule on each node refuses connections to this machine, except
// to the API server, the mirror and one catalog. The mirror has TLS of a private authority, and another path.
package disconnected
