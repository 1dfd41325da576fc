package olmtext

import (
	"fmt"
	"strings"
)

// NoGroupForPlan is of the condition Installed of an InstallPlan in a namespace without an OperatorGroup.
const NoGroupForPlan = "no operator group found that is managing this namespace"

// Retrying is the beginning of status.message while the supervisor retries a step.
const Retrying = "retrying execution due to error: "

// InvalidPlanData is contained in the error of a step that no retry can apply.
const InvalidPlanData = "the InstallPlan contains invalid data"

// SeveralGroupsForPlan is of the condition Installed in a namespace with several OperatorGroups.
func SeveralGroupsForPlan(count int) string {
	return fmt.Sprintf("more than one operator group(s) are managing this namespace count=%d", count)
}

// Formats of errors, with the name of the object and the cause.
const (
	// CRDUpdateRefused is the error of an update of a CustomResourceDefinition that the API server refuses.
	CRDUpdateRefused = "error updating CRD %q: %w"
	// ManifestUnreadable is the error of a step whose manifest cannot be decoded.
	ManifestUnreadable = "error parsing step manifest: %s: %w"
	// SecretMissing is the error of a step for a Secret that does not exist.
	SecretMissing = "secret %s does not exist - %w" //nolint:gosec // it is a message
)

// AccountMissing is of the condition Installed if the ServiceAccount of an OperatorGroup, as namespace/name, does not exist.
func AccountMissing(account, group string) string {
	return fmt.Sprintf("please make sure the service account exists. sa=%s operatorgroup=%s", account, group)
}

// APINotServed is the error of a step whose API group the cluster does not serve.
func APINotServed(group, version, kind, name string) string {
	return fmt.Sprintf("api-server resource not found installing %s %s: GroupVersionKind %s/%s, Kind=%s not found on the cluster. "+
		"This API may have been deprecated and removed, see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information.",
		kind, name, group, version, kind)
}

// KindNotServed is the error of a step whose API group the cluster serves without the kind.
func KindNotServed(group, version, kind string) string {
	return fmt.Sprintf("Unable to find GVK in discovery: %s %s %s", group, version, kind)
}

// StoredVersionRemoved is the error of a CustomResourceDefinition that lacks a version in which objects are stored.
func StoredVersionRemoved(crd, version string) string {
	return fmt.Sprintf("risk of data loss updating %q: new CRD removes version %s that is listed as a stored version on the existing CRD", crd, version)
}

// ObjectsInvalid is the error of a CustomResourceDefinition that makes an existing object invalid. The cause is ObjectInvalid.
func ObjectsInvalid(crd, cause string) string {
	return fmt.Sprintf("error validating existing CRs against new CRD's schema for %q: %s", crd, cause)
}

// ObjectInvalid is the error of an existing object.
func ObjectInvalid(kind, object, problem string) string {
	return fmt.Sprintf("error validating %s %q: updated validation is too restrictive: %s", kind, object, problem)
}

// CRDVersionUnsupported is the error of a CustomResourceDefinition of an unknown API version. That of v1beta1 is
// APINotServed.
func CRDVersionUnsupported(version string) string {
	return "CRD APIVersion from manifest not supported: " + version
}

// SeveralOwners is the error of a CustomResourceDefinition that several versions own.
func SeveralOwners(csvs []string, namespace, crd string) string {
	return fmt.Sprintf("Existing CSVs [%s] in namespace %s all claim to own CRD %s", strings.Join(csvs, " "), namespace, crd)
}

// DependentOwners is the error of a version whose definitions other versions own already.
func DependentOwners(csv string) string {
	return "pre-existing CRD owners found for owned CRD(s) of dependent CSV " + csv
}
