// Package tenant lets a user with the ClusterRole edit in one namespace attack supervisors that
// have the permissions of deploy/rbac.
package tenant
