//go:build !race

package index

// stride is between the packages of real catalogs that are looked at.
const stride = 1
