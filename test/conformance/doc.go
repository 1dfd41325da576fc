// Package conformance compares "registry serve" with the catalog server of the
// field, opm, both running as processes on the same catalog: every RPC, the
// descriptors that reflection shows, error texts, and the verdict on catalogs
// good and bad. Differences are allowed only where docs/decisions says why.
package conformance
