// Package apiproxy is a proxy for a real API server. It injects the failures of networks and
// overloaded servers: it refuses and delays calls, cuts connections before a call has arrived or
// after it was carried out, ends watches, and is unreachable for a time. A rule decides about each
// call; every call is recorded.
//
// Clients use plain HTTP on the loopback interface, so a cut connection belongs to one call. They
// use JSON, so the proxy can read the names of created objects.
package apiproxy
