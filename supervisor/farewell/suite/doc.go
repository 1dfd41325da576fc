// Package suite tests the farewell controller on a real control plane. It creates and deletes endpoints of
// pods, and checks the definitions. The unit tests of the controller are elsewhere, and start at once.
package suite
