// Package dialtls secures the connections to catalogs at an address: which certificates they use, and why a
// connection fails.
//
// Settings and Material are values that are parsed from annotations and from PEM text. Credentials use the newest
// Material for each new connection, and remember the typed reason of the last failure. Load is the only function that
// reads from a cluster.
package dialtls
