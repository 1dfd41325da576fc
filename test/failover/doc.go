// Package failover installs the product on a bed of real nodes, as an administrator would, and
// causes losses: of nodes, leaders and replicas. It checks what clients of a catalog see and what
// remains afterwards.
//
// The end-to-end suite runs many rounds. The failover benchmark measures with it.
package failover
