// Package discovery finds out whether an API, and the operator behind it, is in a
// cluster, and tells apart what is often taken for the same: that it is not there, that
// one may not see it, that nobody could be asked, and that it is there with nobody
// looking after it.
//
// [Next] is the whole of the reasoning: from a [Setting] and the [Facts] it leads to the
// next [Question] or to a [Verdict]. A [Finder] asks a cluster these questions, keeps the
// results for a while and shares them among callers. docs/discovery.md has the table by
// which this package is tested.
package discovery
