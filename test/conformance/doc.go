// Package conformance compares "registry serve" with the usual catalog server, opm. Both run as
// processes on the same catalog. It compares every RPC, the descriptors in reflection, error texts,
// and the verdict on valid and invalid catalogs. Differences are allowed only where docs/decisions
// explains them.
package conformance
