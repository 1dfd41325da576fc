// Package tenant has a user bound to the ClusterRole edit in one namespace do what may hold
// up supervisors that have the rights of deploy/rbac.
package tenant
