// Package clients generates clients of both contracts in other modules and
// languages, exactly as docs/clients.md tells people to, and runs them against a
// registry of ours.
//
// It has only tests.
package clients
