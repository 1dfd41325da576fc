//go:build !race

package index

// stride is between the bundles of real catalogs that are looked at.
const stride = 1
