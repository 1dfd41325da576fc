// Package suite takes over and hands back on a real API server, and dies at every write.
package suite
