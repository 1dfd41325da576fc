// Package suite tests the commands that read a cluster on a real API server, as processes and in the process of the test.
package suite
