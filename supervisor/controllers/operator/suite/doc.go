// Package suite tests the controllers of Operators and their components on a real control
// plane, one test a behaviour that users see. It holds nothing else, so that the unit
// tests of the controllers start at once.
package suite
