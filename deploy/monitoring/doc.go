// Package monitoring tests the alerts and the dashboard of deploy/components/monitoring with promtool, and against
// the reference of metrics.
package monitoring
