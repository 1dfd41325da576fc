// Package census counts every object of a cluster, whatever its kind, so that a test can
// say what has come, what has gone, and what bears other marks than before.
package census
