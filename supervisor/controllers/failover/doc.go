// Package failover is the controller that keeps catalogs served when nodes are
// lost.
//
// A replica that no longer answers while another one of the same catalog does is
// marked as not ready, which the node controller would do some fifty seconds
// later, so that the Service leads everybody elsewhere. Pods on nodes that are not
// ready are deleted without grace, so that their Deployments replace them and none
// hangs in Terminating.
//
// Decide is what is done and why, over plain values; docs/decisions/0014 says how
// it came to be so.
package failover
