package api

import "unicode/utf8"

// MaxEventNote is the longest note of an Event, in bytes. The API server refuses a longer one. See
// https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/.
const MaxEventNote = 1024

// EventNote returns a text that fits the note of an Event. It shortens a longer text between two
// characters and appends an ellipsis.
func EventNote(text string) string {
	const ellipsis = "…"
	if len(text) <= MaxEventNote {
		return text
	}
	end := MaxEventNote - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}
