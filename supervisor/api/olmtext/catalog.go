package olmtext

import (
	"fmt"
	"strings"
)

// Messages of CatalogSources.
const (
	AddressUnset     = "image and address unset: at least one must be set for sourcetype: grpc"
	TemplateResolved = "catalog image reference was successfully resolved"
	// IntervalEmpty is the message for polling without an interval. The decoder of CatalogSources sets a default.
	IntervalEmpty = "empty polling interval; cannot requeue registry server sync without a provided polling interval"
)

// TemplateUnresolved is the message for an image template that cannot be resolved. The variables are those without a
// value; improper is true if the result is not an image reference.
func TemplateUnresolved(variables []string, improper bool) string {
	var causes []string
	if len(variables) > 0 {
		causes = append(causes, `variable(s) "`+strings.Join(variables, `", "`)+`" could not be resolved`)
	}
	if improper {
		causes = append(causes, "one or more template(s) has improper syntax")
	}
	return "cannot construct catalog image reference, because " + strings.Join(causes, " and ")
}

// ConfigMapUnset is the message for a CatalogSource without spec.configMap.
func ConfigMapUnset(sourceType string) string {
	return "configmap name unset: must be set for sourcetype: " + sourceType
}

// UnknownSourceType is the message for an unknown spec.sourceType.
func UnknownSourceType(sourceType string) string { return "unknown sourcetype: " + sourceType }

// CatalogConfigMapFailed is the format of the error of a ConfigMap, with its name, that cannot be read.
const CatalogConfigMapFailed = "failed to get catalog config map %s: %w"

// ConfigMapOwnerFailed is the format of the error of a ConfigMap to which no owner can be written.
const ConfigMapOwnerFailed = "unable to write owner onto catalog source configmap - %w"

// EnsureServerFailed is the message for an object of a catalog that cannot be written.
func EnsureServerFailed(err error) string { return "couldn't ensure registry server - " + err.Error() }

// IntervalInvalid is the message for a polling interval that is not a duration.
func IntervalInvalid(err error) string {
	return fmt.Sprintf("error parsing spec.updateStrategy.registryPoll.interval. Using the default value of 15m0s instead. Error: %v", err)
}

// MultipleGroups is of the condition MultipleOperatorGroup of each OperatorGroup of a namespace.
const MultipleGroups = "Multiple OperatorGroup found in the same namespace"

// GroupAccountMissing is of the condition OperatorGroupServiceAccount.
func GroupAccountMissing(name string) string { return "ServiceAccount " + name + " not found" }

// Messages of the condition DisabledCopiedCSVs of the OLMConfig.
const (
	CopiesPresent    = "Copied CSVs are enabled and present across the cluster"
	CopiesMissing    = "Copied CSVs are enabled and at least one copied CSVs is missing"
	CopiesAbsent     = "Copied CSVs are disabled and no unexpected copied CSVs were found for operators installed in AllNamespace mode"
	CopiesNotYetGone = "Copied CSVs are disabled and at least one unexpected copied CSV was found for an operator installed in AllNamespace mode"
)
