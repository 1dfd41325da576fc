// Package caller calls a registry at a steady pace, in the ways in which clients
// do, and records which calls fail and for how long. Suites that take nodes and
// replicas away judge by it what clients see. It is a package and, in the folder
// main, a process: one that runs where the clients of a cluster are.
package caller

import (
	"cmp"
	"slices"
	"time"
)

// Style is a way to hold connections.
type Style string

// The styles.
const (
	// NewConnection opens a connection for each call.
	NewConnection Style = "new connection"
	// LongLived keeps one connection, with keepalive pings.
	LongLived Style = "long-lived"
)

// Call is one call that has ended.
type Call struct {
	Style Style `json:"style"`
	// Begun and Ended are when.
	Begun time.Time `json:"begun"`
	Ended time.Time `json:"ended"`
	// Err is the code with which it failed; empty when it did not.
	Err string `json:"err,omitempty"`
}

// Summary is what a style of client has seen in a span of time.
type Summary struct {
	Calls, Failed int
	// Failing is the time during which calls failed: from the beginning of each
	// failed call to its end, or to when the next was due where it failed sooner;
	// what overlaps is counted once.
	Failing time.Duration
	// Longest is the longest stretch of it.
	Longest time.Duration
	// Errors are the texts of the failures with their numbers.
	Errors map[string]int
}

// Summarise gives what a style saw of the calls that began in a span.
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

// stretchFrom measures how long calls go on failing that overlap the first, and
// counts them.
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

// Styles are all of them.
func Styles() []Style { return []Style{NewConnection, LongLived} }
