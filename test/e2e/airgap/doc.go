// Package airgap runs the commands in the documentation for air-gapped clusters.
package airgap
