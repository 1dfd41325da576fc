// Package extension answers the RPCs of chandlery.registry.v1 from an index:
// what a catalog's clients need beyond the frozen api.Registry.
//
// What decides an answer is apart from what carries it: filters, search,
// conversion and page tokens are functions of values; [Service] reads the index
// that is served when a call begins and keeps every answer within its bounds.
package extension
