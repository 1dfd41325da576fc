// Package nodes holds the cases of test/compat that need running pods: they use a real node, on which
// catalogs and operators run. All cases about lastConnect are here, so that they run together.
package nodes
