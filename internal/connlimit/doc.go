// Package connlimit bounds how many connections a listener has, so that no
// client can use up the memory of a server or lock other clients out.
//
// A client is an IP address. While there is room every connection is accepted.
// A listener that is full closes a connection of the client that has the most, or
// refuses the new one. A few connections beyond the limit are accepted for some
// seconds, which is time enough for a probe.
package connlimit
