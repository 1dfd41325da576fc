package resolver

import (
	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
)

// CatalogKey names a CatalogSource.
type CatalogKey struct {
	Namespace, Name string
}

// String gives namespace/name.
func (k CatalogKey) String() string { return k.Namespace + "/" + k.Name }

// Problem is all that a resolution depends on.
type Problem struct {
	// Namespace is the one being resolved.
	Namespace string
	// Subscriptions are in order of seniority: where two are at odds, the first
	// one keeps what it has.
	Subscriptions []Subscription
	// Operators are the versions that are present in the namespace.
	Operators []Operator
	// Catalogs are the ones in scope. A catalog that exists but has no content
	// to resolve against is here with its Err.
	Catalogs map[CatalogKey]Catalog
}

// Subscription is the wish to have a package.
type Subscription struct {
	Name        string
	Catalog     CatalogKey
	Package     string
	Channel     string // the package's default channel when empty
	StartingCSV string // the channel's head when empty
	// Installed names the operator of the package that is present in the
	// namespace, empty for none.
	Installed string
	// Holds says that it is this Subscription that brought what is installed.
	Holds bool
	// Before names the version that the Subscription had when nothing of the
	// package is present any more: it is the one to be installed again.
	Before string
}

// Operator is a version that is present in the namespace.
type Operator struct {
	Name string
	// Version is zero when the operator does not say.
	Version semver.Version
	// Properties are what it says it provides.
	Properties []bundles.Property
}

// Catalog is one catalog's content, or the reason why there is none.
type Catalog struct {
	Content *bundles.Catalog
	Err     error
}

// Solution is what to do, by the name of the Subscription.
type Solution map[string]Outcome

// Outcome is what to do for one Subscription: install a version, or nothing
// because the newest one is there (both nil), or nothing because of Err.
type Outcome struct {
	Install *Choice
	// Err is an *UnsatisfiableError, or whatever kept the resolver from an answer.
	Err error
}

// Choice is a version to be installed.
type Choice struct {
	Catalog CatalogKey
	Package string
	Channel string
	Bundle  string
	// Replaces is the version it takes over from: the installed one, or else
	// what the channel says.
	Replaces string
	// Properties are the bundle's.
	Properties []bundles.Property
	// Image is where the bundle's manifests are when they are not inline.
	Image string
}
