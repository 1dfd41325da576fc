// Package api is the generated Go form of proto/registry.proto: the messages
// and services through which a catalog answers its clients.
//
// No program may link this package together with another one that registers
// the proto package "api"; the protobuf runtime would stop it at start.
package api
