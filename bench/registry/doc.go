// Command registry compares "registry serve" with the usual catalog server, opm, and with the floor
// (package bench/floor): a bare gRPC server that sends the same bytes from memory. All of them run
// as processes on this machine, in turns, and every figure is the median of several rounds.
//
//	go run ./bench/registry                              everything, on the real catalogs
//	go run ./bench/registry --only 'unary|list'          some sections
//	go run ./bench/registry --catalog DIR --quick        a smoke run
//	go run ./bench/registry --write docs/measurements.md put the tables into a document
//
// The tables go to standard output as Markdown, and progress to standard error. It exits with
// status 1 if a measurement fails, not if a target is missed: the first table shows the missed
// targets.
package main
