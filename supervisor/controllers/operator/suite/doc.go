// Package suite tests the controllers of Operators and their components on a real control plane.
// Each test covers one behaviour that is visible to users. It is a separate package, so that the
// unit tests of the controllers need no control plane.
package suite
