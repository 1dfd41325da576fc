// Package grpcurl runs the grpcurl commands in docs/operations.md with a registry that uses TLS.
package grpcurl
