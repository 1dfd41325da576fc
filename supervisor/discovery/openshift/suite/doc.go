// Package suite runs the supervisor in a cluster that becomes an OpenShift cluster, and then no longer is one.
package suite
