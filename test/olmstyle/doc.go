// Package olmstyle makes, in a cluster without OLM, what OLM would have made there: its
// own Deployments, catalogs, and operators that it has installed, with the names, labels,
// hashes, owners, statuses and field managers that it gives them. Tests take such a cluster
// over.
package olmstyle
