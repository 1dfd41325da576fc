// Package suite tests the farewell controller on a real control plane: pods come and go as
// endpoints, and what the API server is told is looked at. It holds nothing else, so that
// the unit tests of the controller start at once.
package suite
