// Package grpcurl runs the commands that docs/operations.md gives for grpcurl against a
// registry that encrypts, as somebody would who reads it.
package grpcurl
