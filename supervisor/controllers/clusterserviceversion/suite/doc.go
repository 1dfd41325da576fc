// Package suite tests the ClusterServiceVersion and OperatorGroup controllers
// together on a real control plane, one file a behaviour that users see. It
// holds nothing else, so that the unit tests of the controllers start at once.
package suite
