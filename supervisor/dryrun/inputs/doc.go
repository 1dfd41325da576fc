// Package inputs reads what package dryrun needs: Subscriptions and
// what belongs to them out of files or a namespace of a cluster, and the content
// of catalogs out of directories, index files, servers and the replicas that a
// cluster runs.
//
// Of a cluster it only reads.
package inputs
