// Package scale installs one operator in many namespaces and counts what that costs.
package scale
