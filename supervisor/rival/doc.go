// Package rival finds other lifecycle managers that work on the same kinds in the same
// cluster: OLM, and supervisors of our own that compete for another Lease. Two of them
// undo each other's work, so that a supervisor does not begin beside one, and ends when
// one appears.
//
// Recognising them is a pure function of what was seen; [Sentry] looks.
package rival
