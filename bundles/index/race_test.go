//go:build race

package index

// stride is between the packages of real catalogs that are looked at: the race detector,
// which has nothing to find in them, makes each take ten times as long.
const stride = 16
