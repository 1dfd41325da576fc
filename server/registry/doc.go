// Package registry answers the RPCs of the api.Registry contract from an index.
//
// The answers in the index are already encoded. The package describes the service itself instead of
// using the generated description, and has a codec that passes encoded messages through. So gRPC
// sends answers without decoding and encoding them again.
package registry
