// Package competing finds competing lifecycle managers that work on the same kinds in the same cluster: OLM, and
// other supervisors with another Lease. Two managers undo each other's work. A supervisor thus does not start
// beside one, and ends when one appears.
//
// Recognition is a pure function of an observation; [Detector] reads the cluster.
package competing
