// Package suite tests the commands that read a cluster, as processes, on a real API server.
package suite
