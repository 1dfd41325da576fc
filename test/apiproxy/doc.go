// Package apiproxy is a proxy before a real API server that does to its clients what
// networks and overloaded servers do: it refuses and delays calls, cuts connections
// before a call has arrived or after it has been carried out, ends watches, and is away
// for a while. A rule decides about each call; every call is recorded by name.
//
// Clients talk plain HTTP to it on loopback, so that a cut connection is that of one call,
// and JSON, so that what they make has a name that the proxy can read.
package apiproxy
