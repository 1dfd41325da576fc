// Package suite tests the OperatorGroup controllers on a real control plane. Each file tests one
// behaviour that is visible to users. It is a separate package, so that the unit tests of the
// controllers need no control plane.
package suite
