package api

import "strings"

// PinnedVersion returns the version that the annotations of a Subscription name, empty for none.
func PinnedVersion(annotations map[string]string) string {
	return strings.TrimSpace(annotations[AnnotationPin])
}
