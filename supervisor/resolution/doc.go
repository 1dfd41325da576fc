// Package resolution decides which version each Subscription of a namespace should have next, and which
// dependencies must be installed with it.
//
// It is pure: no client, no clock, no goroutine of its own. The same problem always has the same solution.
//
// Each Subscription is first solved separately. The input is its candidates in order of preference, their
// dependencies, and the present operators, which are facts. Only Subscriptions whose solutions conflict are
// solved together. If a group cannot be satisfied as a whole, the Subscriptions that come first in seniority
// are. Each of the others fails alone, with an error that states the reason and the remedy.
// docs/decisions/0015-resolution.md explains the design.
//
// Tools and users match on the wording of the reasons, so it must not change. Additional text follows after a
// semicolon.
package resolution
