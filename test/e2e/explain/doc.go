// Package explain creates real failures in a control plane with a supervisor and runs "supervisor
// explain". The first line must name the actual cause.
package explain
