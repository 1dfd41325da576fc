// Package signature decides which images need a signature, and whether a signature of cosign is accepted. It sends no
// requests.
//
// A [Policy] has rules for prefixes of repositories. Input that is not valid in every part is refused as a whole.
package signature
