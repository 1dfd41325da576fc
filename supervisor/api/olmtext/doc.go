// Package olmtext has the sentences that clients of Operator Lifecycle Manager (OLM) compare, letter by letter as OLM
// writes them.
//
// Details of the supervisor never follow such a sentence in the same field. They are in api.AnnotationCause, in a
// condition of another type, or in an Event.
package olmtext
