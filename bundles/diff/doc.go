// Package diff says what the update of a catalog changes for those who use it:
// packages, channels, heads and bundles that come, go and change, and which of
// that leaves installed versions without an upgrade path.
package diff
