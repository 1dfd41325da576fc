// Package attack attacks a supervisor as a user bound to the ClusterRole edit in one
// namespace can: with a Deployment that looks like OLM, a Lease that says that another
// supervisor works for 68 years, and large objects of every kind that the supervisor watches
// and edit may create. It measures whether the supervisor keeps leading, what it keeps in
// memory, and how long an installation in another namespace takes.
package attack
