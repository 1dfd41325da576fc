// Package suite runs the supervisor in a cluster that becomes one of OpenShift, and that
// no longer is one.
package suite
