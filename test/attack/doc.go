// Package attack attacks a supervisor as a user with the ClusterRole edit in one namespace can. It
// creates a Deployment that looks like OLM, and a Lease of another supervisor that is valid for 68
// years. It also creates large objects of every kind that the supervisor watches and edit may
// create. It measures whether the supervisor remains the leader, how much memory it uses, and how
// long an installation in another namespace takes.
package attack
