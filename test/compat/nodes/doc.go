// Package nodes holds the cases of test/compat that need running pods: they use a real node, on which
// catalogs and operators run.
package nodes
