// Package supervisor is the composition of the controllers: options, leader
// election, and the list of what runs.
package supervisor
