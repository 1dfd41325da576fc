// Package pin is how a Subscription says which version it is to have.
package pin

import "strings"

// Annotation on a Subscription names the version which it is to have: it stays
// there, goes there, or goes back there.
const Annotation = "chandlery.dev/pin"

// Of returns the name of the version that the annotations of a Subscription ask for;
// empty for none.
func Of(annotations map[string]string) string { return strings.TrimSpace(annotations[Annotation]) }
