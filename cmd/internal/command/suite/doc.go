// Package suite proves the commands of the supervisor that look at a cluster, as
// processes, on a real API server.
package suite
