// Package suite tests the ClusterServiceVersion and OperatorGroup controllers together on a real
// control plane, with one file for each behaviour. It holds nothing else, so that the unit tests of
// the controllers need no control plane.
package suite
