// Package scale installs one operator in more and more namespaces, and fails when an installation
// beside many others costs more than one beside few, or more than its budget.
package scale
