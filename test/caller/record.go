// Package caller calls a registry at a steady pace, in the ways of real clients, and records which
// calls fail and for how long. Suites that stop nodes and replicas use it to measure what clients
// see. It is a package and, in the folder main, a program that runs where the clients of a cluster
// are.
package caller

import (
	"cmp"
	"slices"
	"time"
)

// Style is a way to use connections.
type Style string

// The styles.
const (
	// NewConnection opens a connection for each call.
	NewConnection Style = "new connection"
	// LongLived keeps one connection, with keepalive pings.
	LongLived Style = "long-lived"
)

// Call is a finished call.
type Call struct {
	Style Style `json:"style"`
	// Begun and Ended are the times of the call.
	Begun time.Time `json:"begun"`
	Ended time.Time `json:"ended"`
	// Err is the code of the failure; empty for a success.
	Err string `json:"err,omitempty"`
}

// Summary is what a style of client has seen in a time span.
type Summary struct {
	Calls, Failed int
	// Failing is the time during which calls failed. A failed call counts from its start to its
	// end, or to the start of the next one if it failed sooner. Overlapping times count once.
	Failing time.Duration
	// Longest is the longest failing period.
	Longest time.Duration
	// Errors maps the texts of the failures to their numbers.
	Errors map[string]int
}

// Summarise returns what a style has seen of the calls that began in a time span.
func Summarise(calls []Call, style Style, from, until time.Time) Summary {
	s := Summary{Errors: map[string]int{}}
	var failed []Call
	for _, c := range calls {
		if c.Style != style || c.Begun.Before(from) || !c.Begun.Before(until) {
			continue
		}
		s.Calls++
		if c.Err != "" {
			if due := c.Begun.Add(DefaultPace.Every); c.Ended.Before(due) {
				c.Ended = due
			}
			s.Failed++
			s.Errors[c.Err]++
			failed = append(failed, c)
		}
	}
	slices.SortFunc(failed, func(a, b Call) int { return cmp.Compare(a.Begun.UnixNano(), b.Begun.UnixNano()) })
	for begin := 0; begin < len(failed); {
		stretch, next := stretchFrom(failed[begin:])
		begin += next
		s.Failing += stretch
		s.Longest = max(s.Longest, stretch)
	}
	return s
}

// stretchFrom returns the length of the failing period of overlapping calls that begins with the
// first one, and their number.
func stretchFrom(failed []Call) (time.Duration, int) {
	end := failed[0].Ended
	for i, c := range failed[1:] {
		if c.Begun.After(end) {
			return end.Sub(failed[0].Begun), i + 1
		}
		if c.Ended.After(end) {
			end = c.Ended
		}
	}
	return end.Sub(failed[0].Begun), len(failed)
}

// Styles returns all styles.
func Styles() []Style { return []Style{NewConnection, LongLived} }
