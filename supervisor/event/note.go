// Package event holds what the Events of all controllers have in common.
package event

import "unicode/utf8"

// MaxNote is the longest note that the API takes for an Event, in bytes. One
// that is longer is refused and the Event is lost. See
// https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/.
const MaxNote = 1024

const ellipsis = "…"

// Note makes a text fit for the note of an Event: a text that is too long is
// cut between two characters and ends in an ellipsis.
func Note(text string) string {
	if len(text) <= MaxNote {
		return text
	}
	end := MaxNote - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}
