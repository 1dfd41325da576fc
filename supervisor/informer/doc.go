// Package informer bounds the memory of the supervisor's informers.
//
// The supervisor watches kinds in the whole cluster, and tenants create objects of some of them. Transform
// keeps the fields that the controllers read, and no field whose size a tenant chooses. New returns informers
// that list in pages, so that a start with many large objects does not hold all of them in memory at once.
//
// An object that lost a part bears AnnotationTrimmed in the cache. NewClient reads such an object from the API
// server when a controller gets it; Complete does so for lists. Watches lists every watched kind, with its
// creators and the fields that are kept.
package informer
