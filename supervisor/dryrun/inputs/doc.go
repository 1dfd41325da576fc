// Package inputs reads the inputs of package dryrun. It reads Subscriptions and related objects from files or
// from a namespace of a cluster. It reads the content of catalogs from directories, index files, servers and
// the replicas of a cluster.
//
// It writes nothing to the cluster.
package inputs
