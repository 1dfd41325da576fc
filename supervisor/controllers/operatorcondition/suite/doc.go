// Package suite tests the OperatorCondition controller on a real control plane. Each test covers
// one behaviour that is visible to users. It is a separate package, so that the unit tests of the
// controller need no control plane.
package suite
