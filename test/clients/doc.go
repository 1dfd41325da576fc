// Package clients generates clients of both contracts in other modules and languages, as
// docs/clients.md describes, and runs them with our registry.
//
// It has only tests.
package clients
