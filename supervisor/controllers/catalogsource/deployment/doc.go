// Package deployment derives the objects of a hosted catalog: its Deployment, Service, ServiceAccount,
// NetworkPolicy and PodDisruptionBudget. It performs no I/O.
package deployment
