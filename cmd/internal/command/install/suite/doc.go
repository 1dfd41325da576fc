// Package suite tests the commands that install, upgrade and remove operators, as processes, beside a supervisor on a
// real API server.
package suite
