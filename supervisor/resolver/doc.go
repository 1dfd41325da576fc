// Package resolver decides which version each Subscription of a namespace should
// have next, and what has to be installed along with it.
//
// It is pure: no client, no clock, no goroutine of its own. The same problem
// always has the same solution.
//
// Each Subscription is solved apart from the others at first: its candidates in
// order of preference, what they need, and the operators that are present, which
// are facts. Only Subscriptions whose solutions meet are solved together. Where
// not all of a group can be satisfied, those that come first in seniority are,
// and each of the others fails alone, with an error that says why and what to do
// about it. docs/decisions/0015-resolution.md has the reasons.
//
// The wording of the reasons follows what tools and people match on today; what
// is added to it comes after a semicolon.
package resolver
