// Package informer bounds what the informers of the supervisor keep in memory.
//
// The supervisor watches kinds in the whole cluster, and tenants create objects of some of
// them. Transform leaves of each object what the controllers read, and nothing whose size a
// tenant chooses. New makes informers that list in pages, so that a start with many large
// objects needs no memory for all of them at once.
//
// An object that lost a part bears AnnotationTrimmed in the cache. NewClient reads such an
// object at the API server when a controller gets it; Complete does so for lists. Kinds
// lists every watched kind, with who may create it and what is kept.
package informer
