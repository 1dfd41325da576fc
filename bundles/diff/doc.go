// Package diff returns what the update of a catalog changes for its users: packages, channels,
// heads and bundles that are added, removed or changed. It reports which changes leave installed
// versions without an upgrade path.
package diff
