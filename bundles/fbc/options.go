package fbc

import (
	"cmp"
	"runtime"
)

// The default limits. They are far above the needs of existing catalogs and bound the memory for a hostile one.
const (
	DefaultMaxFileBytes  = 1 << 30
	DefaultMaxTotalBytes = 4 << 30
	DefaultMaxDocuments  = 4 << 20
	DefaultMaxDepth      = 1000
)

// Options bound the content of a catalog. The zero value means the defaults.
type Options struct {
	// Concurrency is the number of files decoded in parallel; the number of processors by default.
	Concurrency int
	// MaxFileBytes is the largest size of a file.
	MaxFileBytes int64
	// MaxTotalBytes is the largest size of all files together.
	MaxTotalBytes int64
	// MaxDocuments is the largest number of objects in a catalog.
	MaxDocuments int64
	// MaxDepth is the largest nesting depth of objects and lists in an object.
	MaxDepth int
}

func (o Options) withDefaults() Options {
	o.Concurrency = cmp.Or(o.Concurrency, runtime.GOMAXPROCS(0))
	o.MaxFileBytes = cmp.Or(o.MaxFileBytes, DefaultMaxFileBytes)
	o.MaxTotalBytes = cmp.Or(o.MaxTotalBytes, DefaultMaxTotalBytes)
	o.MaxDocuments = cmp.Or(o.MaxDocuments, DefaultMaxDocuments)
	o.MaxDepth = cmp.Or(o.MaxDepth, DefaultMaxDepth)
	return o
}
