package resolution

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// ErrPending is the error of a Subscription whose result may depend on a catalog that is being read for the first
// time.
var ErrPending = errors.New("the catalog is being read for the first time")

// Errors of the solver.
var (
	errConflict        = errors.New("constraints cannot all be satisfied")
	errNoConflict      = errors.New("constraints can all be satisfied")
	errTooManyVersions = fmt.Errorf("more than %d versions would have to be considered; name channels and startingCSVs in the Subscriptions to narrow the choice", maxNodes)
)

// UnsatisfiableError occurs when no version of the package meets all constraints, or when the Subscription names a
// catalog, package, channel or version that does not exist.
type UnsatisfiableError struct {
	// Reason is one of the reasons of api.ConditionBlocked.
	Reason string
	// Reasons are the statements that together leave no solution, in byte order. The set is minimal.
	Reasons []string
	// Remedy is what a user can do.
	Remedy string
	// KeptBy names the other Subscription that keeps the package; empty if that is not the cause.
	KeptBy string
	// Channels are the channels of the package if it lacks the channel of the Subscription; nil for other causes.
	Channels []string
}

// Cause returns the sentence of OLM: the reasons without the remedy.
func (e *UnsatisfiableError) Cause() string {
	return olmtext.Unsatisfiable(e.Reasons)
}

// Error returns the cause and the remedy.
func (e *UnsatisfiableError) Error() string {
	text := e.Cause()
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// CatalogError occurs when the catalog of a Subscription has no content, or when the package in it is invalid: its
// channel has no order, a skipRange cannot be parsed, or the only candidate has invalid properties.
type CatalogError struct {
	Catalog CatalogKey
	Err     error
}

// Error returns the name of the catalog and the cause.
func (e *CatalogError) Error() string {
	return olmtext.CatalogError(e.Catalog.String(), e.Err.Error())
}

// Unwrap returns the cause.
func (e *CatalogError) Unwrap() error { return e.Err }

// PinnedError reports that a newer version is not installed because the Subscription is pinned to the installed
// one.
type PinnedError struct {
	// Pin is the installed version, and Available the newest available one.
	Pin, Available string
}

// Error returns a message with both versions and the remedy.
func (e *PinnedError) Error() string {
	return fmt.Sprintf("annotation %s pins %s; %s is available; to upgrade, remove the annotation or set a newer version", api.AnnotationPin, e.Pin, e.Available)
}

// unsatisfiable returns the error for a Subscription. Its reasons include that the Subscription exists.
func unsatisfiable(sub *Subscription, reason, remedy, fact string) *UnsatisfiableError {
	return &UnsatisfiableError{
		Reason:  reason,
		Reasons: []string{fact, exists(sub)},
		Remedy:  remedy,
	}
}

func exists(sub *Subscription) string { return olmtext.SubscriptionExists(sub.Name) }

// catalogNotFound returns the error for a Subscription whose catalog does not exist.
func catalogNotFound(sub *Subscription, catalogs map[CatalogKey]Catalog) error {
	return unsatisfiable(sub, api.ReasonCatalogNotFound, catalogRemedy(catalogs),
		olmtext.CatalogNotFound(sub.Catalog.Name, sub.Catalog.Namespace, sub.Name))
}

// catalogRemedy returns a remedy with the catalogs that a Subscription could name.
func catalogRemedy(catalogs map[CatalogKey]Catalog) string {
	names := make([]string, 0, len(catalogs))
	for key := range catalogs {
		names = append(names, key.String())
	}
	if len(names) == 0 {
		return "neither this namespace nor the global namespace has a CatalogSource; create one"
	}
	slices.Sort(names)
	return "set spec.source and spec.sourceNamespace to one of " + joinNames(names)
}

// packageNotFound returns the error for a Subscription whose package the catalog does not have. For an empty catalog,
// OLM states only that it has no operators; the reasons state both.
func packageNotFound(sub *Subscription, packages []*content.Package) error {
	err := unsatisfiable(sub, api.ReasonPackageNotFound,
		fmt.Sprintf("the catalog has %d packages; check spec.name%s", len(packages), similarNames(sub.Package, packages)),
		olmtext.PackageNotFound(sub.Package, sub.Name))
	if len(packages) == 0 {
		err.Reasons = slices.Insert(err.Reasons, 0, olmtext.CatalogNotFound(sub.Catalog.Name, sub.Catalog.Namespace, sub.Name))
	}
	return err
}

// channelNotFound returns the error for a Subscription whose channel the package does not have.
func channelNotFound(sub *Subscription, pkg *content.Package) error {
	names := make([]string, 0, len(pkg.Channels))
	for _, channel := range pkg.Channels {
		names = append(names, channel.Name)
	}
	err := unsatisfiable(sub, api.ReasonChannelNotFound, "set spec.channel to one of "+joinNames(names),
		olmtext.ChannelNotFound(sub.Channel, sub.Package, sub.Name))
	err.Channels = names
	return err
}

// orderProblem returns an error if the channel of a Subscription, or else the default channel, has no order.
func orderProblem(sub *Subscription, channels []*content.Channel) error {
	if len(channels) == 0 || channels[0].Err == nil {
		return nil
	}
	return unsatisfiable(sub, api.ReasonConstraintsNotSatisfiable, "ask the publisher of the catalog to fix it, or set spec.channel to another channel", channels[0].Err.Error())
}

// versionNotFound returns the error for a Subscription for which the channels have no version.
func versionNotFound(sub *Subscription, pkg *content.Package, channels []*content.Channel) error {
	if err := orderProblem(sub, channels); err != nil && sub.StartingCSV == "" {
		return err
	}
	entries := 0
	for _, channel := range channels {
		entries += len(channel.Entries)
	}
	if sub.StartingCSV != "" && entries > 0 {
		return unsatisfiable(sub, api.ReasonStartingVersionNotFound, fmt.Sprintf("set spec.startingCSV to an entry of the channel or remove it; the channel has %d entries", entries),
			olmtext.VersionNotFound(sub.StartingCSV, channelName(sub, pkg), sub.Package, sub.Name))
	}
	return unsatisfiable(sub, api.ReasonChannelNotFound, "the catalog lists no version there; ask its publisher, or set spec.channel to another channel",
		olmtext.ChannelNotFound(channelName(sub, pkg), sub.Package, sub.Name))
}

// pinNotFound returns the error for a pin to a version that the Subscription's channels do not have.
func pinNotFound(sub *Subscription, pkg *content.Package) error {
	remedy := fmt.Sprintf("the package has no version of that name; fix annotation %s, or remove it", api.AnnotationPin)
	if names := namesOfNumber(sub, pkg); len(names) > 0 {
		remedy = fmt.Sprintf("the annotation needs the name of a version; set annotation %s to the name of version %s (%s), or remove it", api.AnnotationPin, sub.Pin, joinNames(names))
	}
	var elsewhere []string
	for _, channel := range pkg.Channels {
		if channel.Entry(sub.Pin) != nil {
			elsewhere = append(elsewhere, channel.Name)
		}
	}
	if len(elsewhere) > 0 {
		remedy = fmt.Sprintf("set spec.channel to a channel that has it (%s), or name another version in annotation %s", joinNames(elsewhere), api.AnnotationPin)
	}
	fact := olmtext.VersionNotFound(sub.Pin, channelName(sub, pkg), sub.Package, sub.Name)
	return unsatisfiable(sub, api.ReasonPinNotFound, remedy, fact+", which is pinned to it")
}

// noUpgradePath returns the error for a pin to a version that is not older, and to which no updates lead.
func noUpgradePath(sub *Subscription, target *content.Entry) error {
	return unsatisfiable(sub, api.ReasonPinNotFound, fmt.Sprintf("set spec.channel to a channel with an upgrade path from %s to %s, or name another version in annotation %s", sub.Installed, sub.Pin, api.AnnotationPin),
		fmt.Sprintf("channel %s of package %s has no upgrade path from %s to %s, which is not older and to which subscription %s is pinned",
			target.Channel.Name, sub.Package, sub.Installed, sub.Pin, sub.Name))
}

// packageClaimed returns the error for a Subscription whose package a senior one keeps.
func packageClaimed(senior, sub *Subscription) error {
	remedy := fmt.Sprintf("delete subscription %s, or give it the same source, channel and startingCSV as subscription %s", sub.Name, senior.Name)
	if sub.Pin != senior.Pin {
		remedy = fmt.Sprintf("delete subscription %s, or give it the same source, channel and annotation %s as subscription %s", sub.Name, api.AnnotationPin, senior.Name)
	}
	if sub.Generated {
		remedy = fmt.Sprintf("subscription %s was created for a dependency and is not needed beside subscription %s; delete it", sub.Name, senior.Name)
	}
	return &UnsatisfiableError{
		Reason: api.ReasonPackageClaimed,
		Reasons: []string{
			olmtext.OnePerPackage(sub.Package),
			exists(senior),
			exists(sub),
		},
		KeptBy: senior.Name,
		Remedy: remedy,
	}
}

// unreadableBundle returns the error for a bundle with invalid properties.
func unreadableBundle(catalog CatalogKey, b *content.Bundle) error {
	return &CatalogError{Catalog: catalog, Err: b.Err}
}

// invalidSkipRange returns the error for an entry with an invalid skipRange.
func invalidSkipRange(sub *Subscription, e *content.Entry, err error) error {
	return &CatalogError{Catalog: sub.Catalog, Err: fmt.Errorf("package %s, channel %s, bundle %s: skipRange: %w; ask the publisher of the catalog to fix it",
		sub.Package, e.Channel.Name, e.Bundle.Name, err)}
}

// joinNames joins names, at most the first few.
func joinNames(names []string) string {
	const most = 20
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d others", strings.Join(names[:most], ", "), len(names)-most)
}
