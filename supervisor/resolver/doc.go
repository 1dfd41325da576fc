// Package resolver decides which version each Subscription of a namespace
// should have next.
//
// It is pure: no client, no clock, no goroutine. The same problem always has the
// same solution, and a Subscription that cannot be satisfied fails alone, with
// an error that says why and what to do about it.
//
// The wording of the reasons follows what tools and people match on today; what
// is added to it comes after a semicolon.
package resolver
