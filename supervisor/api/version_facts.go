package api

import (
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Values of LabelGroupAccount.
const (
	// GroupAccountNone is the value if the OperatorGroup names no service account.
	GroupAccountNone = "none"
	// GroupAccountNamed is the value if it names one.
	GroupAccountNamed = "named"
)

// CatalogLabels returns the labels with the catalog of a version. A name that does not fit a label is missing. There are none
// without a valid namespace: users can write the annotation of earlier builds.
func CatalogLabels(catalog types.NamespacedName) map[string]string {
	if catalog.Namespace == "" || len(validation.IsValidLabelValue(catalog.Namespace)) > 0 {
		return nil
	}
	labels := map[string]string{LabelCatalogNamespace: catalog.Namespace}
	if len(validation.IsValidLabelValue(catalog.Name)) == 0 {
		labels[LabelCatalog] = catalog.Name
	}
	return labels
}

// RecordedCatalog returns the catalog that a version records; false if it records none. Its name is empty if it does not
// fit a label. Earlier builds recorded it in an annotation.
func RecordedCatalog(o metav1.Object) (types.NamespacedName, bool) {
	if namespace, found := o.GetLabels()[LabelCatalogNamespace]; found {
		return types.NamespacedName{Namespace: namespace, Name: o.GetLabels()[LabelCatalog]}, true
	}
	former, found := o.GetAnnotations()[LabelCatalog]
	namespace, name, _ := strings.Cut(former, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}, found
}

// RecordedAccount returns the value of LabelGroupAccount that a version records; empty if it records none. Earlier builds
// recorded the name of the account in an annotation.
func RecordedAccount(o metav1.Object) string {
	if value, found := o.GetLabels()[LabelGroupAccount]; found {
		return value
	}
	account, found := o.GetAnnotations()[LabelGroupAccount]
	switch {
	case !found:
		return ""
	case account == "":
		return GroupAccountNone
	default:
		return GroupAccountNamed
	}
}

// MayBeCopied reports whether the status of a version permits copies of it: it has a verdict, and did not fail for a reason
// in its OperatorGroup.
func MayBeCopied(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	if csv.Status.Phase == operatorsv1alpha1.CSVPhaseNone || csv.Status.Phase == operatorsv1alpha1.CSVPhaseUnknown {
		return false
	}
	if csv.Status.Phase != operatorsv1alpha1.CSVPhaseFailed {
		return true
	}
	switch csv.Status.Reason { //nolint:exhaustive // All other reasons have to do with the operator and not with the namespaces that it serves.
	case operatorsv1alpha1.CSVReasonInvalidInstallModes,
		operatorsv1alpha1.CSVReasonUnsupportedOperatorGroup,
		operatorsv1alpha1.CSVReasonNoTargetNamespaces,
		operatorsv1alpha1.CSVReasonNoOperatorGroup,
		operatorsv1alpha1.CSVReasonTooManyOperatorGroups,
		operatorsv1alpha1.CSVReasonInterOperatorGroupOwnerConflict,
		operatorsv1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs:
		return false
	}
	return true
}
