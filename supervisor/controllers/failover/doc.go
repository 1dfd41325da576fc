// Package failover implements the controller that keeps catalogs available after the loss of nodes.
//
// If a replica stops answering while another one of the same catalog answers, the controller marks
// its pod as not ready. The Service then routes to the others. The node lifecycle controller would
// do so some fifty seconds later. Pods on nodes that are not ready are deleted without a grace
// period. Their Deployments replace them, and none remains in Terminating.
//
// Decide makes all decisions over plain values; docs/decisions/0014 gives the reasons.
package failover
