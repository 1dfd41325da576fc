// Package scale installs one operator in a growing number of namespaces. It fails if an
// installation beside many others costs more than one beside few, or more than its budget.
package scale
