// Package corpus makes catalogs that are wrong in one way each: valid ones with
// a mutation of every rule that catalogs have to keep, and with random
// mutations of their structure and of their text. The same catalogs come out
// every time.
//
// Tests judge them by our programs and by those of the field and compare.
package corpus
