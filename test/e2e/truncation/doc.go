// Package truncation runs registries as processes and truncates, overwrites or replaces
// the index files that they serve.
package truncation
