// Package registry answers the RPCs of the api.Registry contract from an
// index.
//
// The answers in the index are encoded already. To hand them to gRPC without
// decoding and encoding them again the package describes the service itself
// instead of using the generated one, and brings a codec that passes encoded
// messages through.
package registry
