// Package event holds what the Events of all controllers have in common.
package event

import "github.com/chandlery/chandlery/bundles"

// MaxNote is the longest note that the API takes for an Event, in bytes. One
// that is longer is refused and the Event is lost. See
// https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/.
const MaxNote = 1024

// Note makes a text fit for the note of an Event: a text that is too long is
// cut between two characters and ends in an ellipsis.
func Note(text string) string { return bundles.Clip(text, MaxNote) }
