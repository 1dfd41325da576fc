// Package migration takes over a cluster from OLM, and hands it back.
//
// A takeover is small: the kinds, names, labels and hashes are the same, so the controllers continue where OLM
// stopped. This package stops OLM by scaling its Deployments to 0. It then records all objects that the
// controllers may replace. A handback restores these objects. Both are plans, created by pure functions of an
// observation. Their steps may be repeated, so an interrupted run can start again.
package migration
