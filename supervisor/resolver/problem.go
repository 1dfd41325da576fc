package resolver

import (
	"github.com/chandlery/chandlery/supervisor/catalogs/content"
	"github.com/chandlery/chandlery/supervisor/resolver/constraint"
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
	// Operators are the versions that are present in the namespace and that
	// nothing present takes over from.
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
	Channel     string // all of them, the package's default channel first, when empty
	StartingCSV string // the channel's head when empty
	// Pin names the version that it is to have, before all else; empty for none.
	Pin string
	// Installed names the operator of the package that is present in the
	// namespace, empty for none.
	Installed string
	// Holds says that it is this Subscription that brought what is installed.
	Holds bool
	// Generated says that it was made for a dependency and not by a user, whose
	// own Subscriptions come first.
	Generated bool
	// Frozen says that something is under way for it, so that nothing new may be
	// begun.
	Frozen bool
	// Before names the version that the Subscription had when nothing of the
	// package is present any more: it is the one to be installed again.
	Before string
}

// Operator is a version that is present in the namespace.
type Operator struct {
	Name string
	// Subject is what it is and provides. Its Version is zero when it does not
	// say.
	Subject constraint.Subject
	// Requires is what it needs of others.
	Requires []constraint.Constraint
}

// Catalog is one catalog's content, or the reason why there is none.
type Catalog struct {
	Content *content.Catalog
	// Priority ranks catalogs as providers of dependencies, the highest first.
	Priority int
	Err      error
	// Pending says that there is no content because it is being read for the
	// first time.
	Pending bool
}

// Solution is what to do, by the name of the Subscription.
type Solution map[string]Outcome

// Outcome is what to do for one Subscription: install a version, or nothing
// because the newest one is there (both nil), or nothing because of Err.
type Outcome struct {
	Install *Choice
	// Along are the versions of other packages that have to be installed along
	// with Install because it needs them and no Subscription asks for them: what
	// is needed comes before what needs it. Each is to get a Subscription of its
	// own. There may be some without Install: what is installed needs them and has
	// lost them.
	Along []*Choice
	// With names the Subscriptions that are to bring, in this solution, what
	// Install or Along needs.
	With []string
	// Available is the version that could be installed were the Subscription not
	// Frozen.
	Available *Choice
	// Held says why a newer version than Install, or than what is installed, cannot
	// be had now: an *UnsatisfiableError, or a *PinnedError. Nothing is wrong with the
	// Subscription.
	Held error
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
	// Entry is the bundle's place in the catalog; its Bundle has the properties
	// and the image.
	Entry *content.Entry
	// Back says that it is older than what is installed: a Subscription is pinned to
	// it.
	Back bool
	// Because says why this version was chosen, for a person: "head of channel
	// stable", "required by crate.v1.0.0".
	Because string
}
