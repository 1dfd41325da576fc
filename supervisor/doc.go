// Package supervisor composes the controllers: options, leader election, and the list of components.
package supervisor
