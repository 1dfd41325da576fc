// Package connlimit bounds how many connections a listener has, so that no client can use up the
// memory of a server or block other clients.
//
// A client is an IP address. A listener that is not full accepts every connection. A full listener
// closes a connection of the client that has the most, or refuses the new one. A few connections
// beyond the limit are accepted for some seconds, which is long enough for a probe.
package connlimit
