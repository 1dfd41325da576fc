// Package timeline tells a person what the InstallPlans of a Subscription went
// through, how things stand now and what can be done. It is pure: what it tells of
// is read elsewhere.
package timeline
