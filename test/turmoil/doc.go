// Package turmoil installs the product on a bed of real nodes, as an
// administrator would, and takes away what can be lost: nodes, leaders, replicas.
// It judges by what clients of a catalog see and by what is left over.
//
// The end-to-end suite goes many rounds with it, the benchmark of failover
// measures with it.
package turmoil
