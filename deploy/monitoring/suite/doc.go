// Package suite runs the queries of the dashboard against a Prometheus that scrapes a supervisor.
package suite
