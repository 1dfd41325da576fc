// Package oracle runs the catalog server that the field uses, opm, as a process
// of its own: its answers and its verdicts are what ours are compared with. It
// cannot be linked, because it registers the proto package api as well.
package oracle
