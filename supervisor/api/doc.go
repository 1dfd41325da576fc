// Package api names what the supervisor reads and writes on objects of Kubernetes: labels,
// annotations, finalizers, condition types, reasons, field managers and Leases. Names under
// chandlery.dev/ are this project's own. The others are those of operators.coreos.com, with their
// meaning there: dashboards, scripts and other clients select on them.
//
// The comment of each label, annotation and finalizer states where it is set, by whom, and what it means.
// docs/reference/annotations.md is generated from these comments.
package api
