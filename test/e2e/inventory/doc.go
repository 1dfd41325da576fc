// Package inventory installs and uninstalls packages of a real catalog one after the other, and
// counts every object of the cluster before and after each. It is a package of its own because
// other tests need no control plane.
package inventory
