package olmtext

import (
	"fmt"
	"strings"
)

// Messages of conditions of Subscriptions.
const (
	// CatalogsHealthy is of CatalogSourcesUnhealthy, which is then False.
	CatalogsHealthy = "all available catalogsources are healthy"
	// NoCatalogs is of CatalogSourcesUnhealthy if no catalog serves the namespace.
	NoCatalogs = "dependency resolution requires at least one catalogsource"
)

// CatalogMissing is of CatalogSourcesUnhealthy for a catalog, as namespace/name, that does not exist in the scope of the
// Subscription.
func CatalogMissing(catalog string) string { return "targeted catalogsource " + catalog + " missing" }

// CatalogUnhealthy is of CatalogSourcesUnhealthy for a catalog that does not answer.
func CatalogUnhealthy(catalog string) string {
	return "targeted catalogsource " + catalog + " unhealthy"
}

// Unsatisfiable is of ResolutionFailed for facts that exclude each other.
func Unsatisfiable(facts []string) string {
	return "constraints not satisfiable: " + strings.Join(facts, ", ")
}

// ExpectedOneGroup is of ResolutionFailed in a namespace that does not have exactly one OperatorGroup.
func ExpectedOneGroup(found int) string {
	return fmt.Sprintf("expected 1 OperatorGroup in the namespace, found %d", found)
}

// CatalogError is of ResolutionFailed for a catalog that cannot be used.
func CatalogError(catalog, cause string) string {
	return fmt.Sprintf("error using catalogsource %s: %s", catalog, cause)
}

// NoRegistryClient is the cause of CatalogError for a catalog without a connection.
func NoRegistryClient(catalog string) string {
	return "no registry client established for catalogsource " + catalog
}

// ListBundlesFailed is the cause of CatalogError for an answer of the catalog that is an error.
func ListBundlesFailed(err error) string { return "failed to list bundles: " + err.Error() }

// IncompleteCSV is contained in BundleUnpackFailed for a manifest without a field, APIVersion or Kind.
func IncompleteCSV(name, field string) string { return "bundle CSV " + name + " missing " + field }

// UnpackFailed is the beginning of BundleUnpackFailed, with the reason of the failure.
func UnpackFailed(reason, message string) string {
	return fmt.Sprintf("Bundle unpacking failed - %s: %s", reason, message)
}

// StepsFailed is of ResolutionFailed for a bundle without usable manifests.
func StepsFailed(err error) string { return "failed to turn bundle into steps: " + err.Error() }

// EnsurePlanFailed is of BundleUnpackFailed if the InstallPlan cannot be created.
func EnsurePlanFailed(err error) string { return "error ensuring InstallPlan: " + err.Error() }

// Deprecation is of PackageDeprecated, ChannelDeprecated and BundleDeprecated. The subject is the schema and the name of
// the entry in the catalog, such as olm.package/lamp.
func Deprecation(subject, text string) string { return subject + ": " + text }

// Deprecations is of Deprecated, which repeats the messages of the other conditions.
func Deprecations(messages []string) string { return strings.Join(messages, "; ") }

// PendingLookups is of InstallPlanPending and InstallPlanFailed for the messages of the bundle lookups of a plan.
func PendingLookups(messages []string) string {
	sentences := make([]string, len(messages))
	for i, m := range messages {
		sentences[i] = m + "."
	}
	return strings.Join(sentences, " ")
}
