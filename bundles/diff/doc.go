// Package diff says what the update of a catalog changes for those who use it:
// packages, channels, heads and bundles that come, go and change, and which of
// that leaves somebody behind who has installed what was there before.
package diff
