// Package soak runs two registries for some time under realistic load. Clients call continuously
// and retry according to gRPC's service config, the content is replaced repeatedly, and the
// programs are restarted in turn. No call may fail, no answer may mix contents, and no resources
// may be left at the end.
//
// SOAK sets the duration: 20 s by default, and some minutes for `make soak`.
package soak
