// Package timeline shows the transitions of a Subscription's InstallPlans, the current state and
// the possible next steps. Its functions are pure; callers read the objects.
package timeline
