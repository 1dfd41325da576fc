// Command registry measures "registry serve" against the catalog server of the
// field, opm, and against the floor (package bench/floor): a bare gRPC server that
// sends the same bytes from memory. All of them run as processes on this machine,
// in turns, and every figure is the median of several rounds.
//
//	go run ./bench/registry                              everything, on the real catalogs
//	go run ./bench/registry --only 'unary|list'          some sections
//	go run ./bench/registry --catalog DIR --quick        a smoke run
//	go run ./bench/registry --write docs/measurements.md put the tables into a document
//
// The tables go to standard output as Markdown, what happens meanwhile to
// standard error. It ends with status 1 when it could not measure, not when a
// target is missed: the first table says which ones are.
package main
