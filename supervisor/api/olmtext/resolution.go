package olmtext

import (
	"fmt"
	"strings"
)

// Facts of Unsatisfiable. The identifier of a version is catalog/namespace/channel/name.

// CatalogNotFound is a fact of Unsatisfiable: the catalog of a Subscription does not exist.
func CatalogNotFound(name, namespace, subscription string) string {
	return fmt.Sprintf("no operators found from catalog %s in namespace %s referenced by subscription %s", name, namespace, subscription)
}

// PackageNotFound is a fact of Unsatisfiable: the catalog does not have the package.
func PackageNotFound(pkg, subscription string) string {
	return fmt.Sprintf("no operators found in package %s in the catalog referenced by subscription %s", pkg, subscription)
}

// ChannelNotFound is a fact of Unsatisfiable: the package does not have the channel.
func ChannelNotFound(channel, pkg, subscription string) string {
	return fmt.Sprintf("no operators found in channel %s of package %s in the catalog referenced by subscription %s", channel, pkg, subscription)
}

// VersionNotFound is a fact of Unsatisfiable: the channel does not have the version.
func VersionNotFound(version, channel, pkg, subscription string) string {
	return fmt.Sprintf("no operators found with name %s in channel %s of package %s in the catalog referenced by subscription %s", version, channel, pkg, subscription)
}

// SubscriptionExists is the fact that a Subscription needs a version.
func SubscriptionExists(subscription string) string {
	return "subscription " + subscription + " exists"
}

// SubscriptionRequires is the fact that a Subscription needs one of some versions.
func SubscriptionRequires(subscription string, versions []string) string {
	choice := versions[0]
	if last := len(versions) - 1; last > 0 {
		choice = fmt.Sprintf("at least one of %s or %s", strings.Join(versions[:last], ", "), versions[last])
	}
	return fmt.Sprintf("subscription %s requires %s", subscription, choice)
}

// VersionUnreferenced is the fact that a version exists that no Subscription has installed.
func VersionUnreferenced(csv string) string {
	return fmt.Sprintf("clusterserviceversion %s exists and is not referenced by a subscription", csv)
}

// VersionDeprecated is the fact that a version has the property olm.deprecated.
func VersionDeprecated(identifier string) string { return "bundle " + identifier + " is deprecated" }

// BundleRequires is the fact that a version depends on another operator.
func BundleRequires(bundle, dependency string) string {
	return fmt.Sprintf("bundle %s requires an operator %s", bundle, dependency)
}

// OnePerPackage is the fact that a namespace has one version of a package.
func OnePerPackage(pkg string) string { return "there can be only one operator from package " + pkg }

// SamePackage is the fact that two versions are of one package.
func SamePackage(a, b, pkg string) string {
	return fmt.Sprintf("%s and %s originate from package %s", a, b, pkg)
}

// OneProvider is the fact that a namespace has one operator with an API, which KindOf returns.
func OneProvider(api string) string { return "there can be only one provider of " + api }

// SameAPI is the fact that two versions have one API, which KindOf returns.
func SameAPI(a, b, api string) string { return fmt.Sprintf("%s and %s provide %s", a, b, api) }

// KindOf returns an API for OneProvider and SameAPI.
func KindOf(group, version, kind string) string {
	return fmt.Sprintf("%s (%s/%s)", kind, group, version)
}

// Dependencies of BundleRequires.

// ProvidingAPI is a dependency on an API.
func ProvidingAPI(group, version, kind string) string {
	return fmt.Sprintf("providing an API with group: %s, version: %s, kind: %s", group, version, kind)
}

// PackageInRange is a dependency on a package.
func PackageInRange(pkg, versions string) string {
	return fmt.Sprintf("with package: %s and with version in range: %s", pkg, versions)
}

// WithLabel is a dependency on a label.
func WithLabel(label string) string { return "with label: " + label }

// Formats of errors of a property olm.constraint, with the cause.
const (
	// ConstraintUndecodable is the error of a property that is not a constraint.
	ConstraintUndecodable = "parse olm.constraint: %w"
	// ConstraintInvalid is the error of a constraint that cannot be used.
	ConstraintInvalid = "convert olm.constraint to resolver predicate: %w"
)

// Shapes of channels without an order. Names are quoted.

// NoChannelHead is the error of a channel in which another entry replaces each entry.
func NoChannelHead(channel, pkg string) string {
	return fmt.Sprintf("no channel heads (entries not replaced by another entry) found in channel %s of package %s", channel, pkg)
}

// ChannelCycle is the error of a channel in which entries replace each other, from the entry head on.
func ChannelCycle(head, channel, pkg string) string {
	return fmt.Sprintf("a cycle exists in the chain of replacement beginning with %s in channel %s of package %s", head, channel, pkg)
}

// SeveralChains is the error of a channel with several chains, each of the form first...last and joined by a comma and a
// blank.
func SeveralChains(count int, channel, pkg, chains string) string {
	return fmt.Sprintf("a unique replacement chain within a channel is required to determine the relative order between channel entries, "+
		"but %d replacement chains were found in channel %s of package %s: %s", count, channel, pkg, chains)
}
