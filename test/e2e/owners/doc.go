// Package owners changes Subscriptions and InstallPlans in random order while two supervisors
// compete for the Lease. It checks the owners of every InstallPlan and its approval. It is a
// package of its own because other tests need no control plane.
package owners
