// Package inventory counts every object of a cluster, of any kind. Tests use it to find objects that
// appeared, disappeared or have other metadata than before.
package inventory
