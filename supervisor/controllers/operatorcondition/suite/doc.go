// Package suite tests the OperatorCondition controller on a real control plane, one test a
// behaviour that users see. It holds nothing else, so that the unit tests of the
// controller start at once.
package suite
