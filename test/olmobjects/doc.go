// Package olmobjects creates, in a cluster without OLM, the objects that OLM would have created: its
// own Deployments, catalogs, and installed operators, with OLM's names, labels, hashes, owners,
// statuses and field managers. Tests take over such a cluster.
package olmobjects
