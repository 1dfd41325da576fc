// Package oracle runs the usual catalog server, opm, as a process. Tests compare its answers and
// verdicts with ours. It cannot be linked, because it also registers the proto package api.
package oracle
