package bundleimage

// Limits of concurrent pulls: in total, which bounds their disk space; for one registry, so that a slow registry does not
// block the others; and for one catalog and one namespace of catalogs, whose images can be in many slow registries.
const (
	maxPulls             = 6
	maxPullsPerHost      = 3
	maxPullsPerCatalog   = 4
	maxPullsPerNamespace = 5
)

// Limits of concurrent requests that resolve a reference.
const (
	maxQueries        = 64
	maxQueriesPerHost = 8
)
