// Package registryv1 is the generated Go form of chandlery.registry.v1: what a
// registry answers beyond the frozen contract of package api.
//
// The two share no message, so that a client may use either alone, and a
// program that registers another package api may use this one.
package registryv1
