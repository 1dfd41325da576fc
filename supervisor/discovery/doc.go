// Package discovery checks whether an API, and the operator behind it, is in a cluster. It distinguishes four
// results: the API is not installed, the user may not see it, no server answered, and the API is installed but
// no operator reconciles it.
//
// [Next] holds the whole decision: from a [Setting] and the [Facts] it returns the next [Probe] or a [Verdict].
// A [Finder] sends these probes to a cluster, caches the results and shares them among callers.
// decisions.md has the table by which this package is tested.
package discovery
