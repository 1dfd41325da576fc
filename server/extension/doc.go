// Package extension answers the RPCs of chandlery.registry.v1 from an index. These serve what
// clients need beyond the frozen api.Registry.
//
// Filters, search, conversion and page tokens are functions of values. [Service] reads the index
// that is served when a call begins and keeps every answer within its limits.
package extension
