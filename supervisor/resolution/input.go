package resolution

import (
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// CatalogKey names a CatalogSource.
type CatalogKey struct {
	Namespace, Name string
}

// String returns NAMESPACE/NAME.
func (k CatalogKey) String() string { return k.Namespace + "/" + k.Name }

// Input describes a namespace: its Subscriptions, its operators, and the catalogs in scope.
type Input struct {
	// Namespace is the namespace to resolve.
	Namespace string
	// Subscriptions are in order of seniority. In a conflict, the first one keeps what it has.
	Subscriptions []Subscription
	// Operators are the versions in the namespace that no other version there replaces.
	Operators []Operator
	// Catalogs are the catalogs in scope. A catalog that exists without content is included with its Err.
	Catalogs map[CatalogKey]Catalog
}

// Subscription is the request for a package.
type Subscription struct {
	Name        string
	Catalog     CatalogKey
	Package     string
	Channel     string // the default channel first, and then all others, when empty
	StartingCSV string // the channel's head when empty
	// Pin is the name of the version that takes precedence over all others; empty for none.
	Pin string
	// Installed is the name of the operator of the package in the namespace; empty for none.
	Installed string
	// OwnsInstalled is true if this Subscription installed that operator.
	OwnsInstalled bool
	// Generated is true if the Subscription was created for a dependency. The Subscriptions of users come first.
	Generated bool
	// InProgress is true if an operation is in progress for the Subscription, so that no other may start.
	InProgress bool
	// LastInstalled is the version that the Subscription had before all versions of the package were removed. It is
	// installed again.
	LastInstalled string
}

// Operator is a version that is present in the namespace.
type Operator struct {
	Name string
	// Subject describes the version and what it provides. Its Version is zero if unknown.
	Subject constraint.Subject
	// Requires are its dependencies.
	Requires []constraint.Constraint
}

// Catalog is the content of a catalog, or the reason why there is none.
type Catalog struct {
	Content *content.Catalog
	// Priority ranks catalogs as providers of dependencies, the highest first.
	Priority int
	Err      error
	// Pending is true if there is no content because the catalog is being read for the first time.
	Pending bool
}

// Solution is what to do, by the name of the Subscription.
type Solution map[string]Outcome

// Outcome is what to do for one Subscription: install a version, nothing because the newest one is installed
// (both nil), or nothing because of Err.
type Outcome struct {
	Install *Choice
	// Dependencies are the versions to install with Install that no Subscription requests, dependencies before their
	// dependents. Each must get its own Subscription. There may be some without Install, if the installed version has
	// lost them.
	Dependencies []*Choice
	// CoInstalled names the Subscriptions that install, in this solution, dependencies of Install or of Dependencies.
	CoInstalled []string
	// Available is the version that could be installed if the Subscription were not InProgress.
	Available *Choice
	// Constrained is the reason why a newer version than Install, or than the installed one, cannot be installed now:
	// an *UnsatisfiableError, or a *PinnedError. It is not an error of the Subscription.
	Constrained error
	// Err is an *UnsatisfiableError, or another failure of the resolver.
	Err error
}

// Choice is a version to install.
type Choice struct {
	Catalog CatalogKey
	Package string
	Channel string
	Bundle  string
	// Replaces is the version that it replaces: the installed one, or else the replaces of the channel entry.
	Replaces string
	// Entry is the bundle's entry in the catalog; its Bundle has the properties and the image.
	Entry *content.Entry
	// Downgrade is true if the version is older than the installed one: a Subscription is pinned to it.
	Downgrade bool
	// Because is the reason for this version, for users: "head of channel stable", "required by crate.v1.0.0".
	Because string
}
