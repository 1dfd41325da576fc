// Package inventory installs and uninstalls packages of a real catalog one after the
// other, and counts every object of the cluster before and after each. It holds nothing
// else, so that the other tests need no control plane.
package inventory
