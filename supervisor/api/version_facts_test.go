package api_test

import (
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
)

// TestRecordedCatalog checks the catalog of a version with labels, and with the annotation of an earlier build.
func TestRecordedCatalog(t *testing.T) {
	long := strings.Repeat("a", 64)
	for name, tt := range map[string]struct {
		object metav1.ObjectMeta
		want   types.NamespacedName
		found  bool
	}{
		"Labels":     {metav1.ObjectMeta{Labels: api.CatalogLabels(types.NamespacedName{Namespace: "olm", Name: "shop"})}, types.NamespacedName{Namespace: "olm", Name: "shop"}, true},
		"LongName":   {metav1.ObjectMeta{Labels: api.CatalogLabels(types.NamespacedName{Namespace: "olm", Name: long})}, types.NamespacedName{Namespace: "olm"}, true},
		"Annotation": {metav1.ObjectMeta{Annotations: map[string]string{"chandlery.dev/catalog": "olm/shop"}}, types.NamespacedName{Namespace: "olm", Name: "shop"}, true},
		"LabelCounts": {metav1.ObjectMeta{
			Labels: api.CatalogLabels(types.NamespacedName{Namespace: "olm", Name: "shop"}), Annotations: map[string]string{"chandlery.dev/catalog": "olm/other"},
		}, types.NamespacedName{Namespace: "olm", Name: "shop"}, true},
		"Nothing": {metav1.ObjectMeta{}, types.NamespacedName{}, false},
	} {
		if got, found := api.RecordedCatalog(&tt.object); got != tt.want || found != tt.found {
			t.Errorf("%s: %s, %t; want %s, %t", name, got, found, tt.want, tt.found)
		}
	}
}

// TestCatalogLabels checks that a name which is no label value causes no label.
func TestCatalogLabels(t *testing.T) {
	for _, catalog := range []types.NamespacedName{{}, {Name: "shop"}, {Namespace: "no label!", Name: "shop"}, {Namespace: strings.Repeat("a", 64), Name: "shop"}} {
		if labels := api.CatalogLabels(catalog); len(labels) > 0 {
			t.Errorf("%s: %v", catalog, labels)
		}
	}
}

// TestRecordedAccount checks the record of the account of an OperatorGroup.
func TestRecordedAccount(t *testing.T) {
	const key = "chandlery.dev/operator-group-account"
	for name, tt := range map[string]struct {
		object metav1.ObjectMeta
		want   string
	}{
		"Label":           {metav1.ObjectMeta{Labels: map[string]string{key: "none"}}, api.GroupAccountNone},
		"LabelCounts":     {metav1.ObjectMeta{Labels: map[string]string{key: "named"}, Annotations: map[string]string{key: ""}}, api.GroupAccountNamed},
		"Annotation":      {metav1.ObjectMeta{Annotations: map[string]string{key: "cook"}}, api.GroupAccountNamed},
		"EmptyAnnotation": {metav1.ObjectMeta{Annotations: map[string]string{key: ""}}, api.GroupAccountNone},
		"Nothing":         {metav1.ObjectMeta{}, ""},
	} {
		if got := api.RecordedAccount(&tt.object); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestMayBeCopied covers every reason of a failed version.
func TestMayBeCopied(t *testing.T) {
	for reason, want := range map[operatorsv1alpha1.ConditionReason]bool{
		operatorsv1alpha1.CSVReasonInvalidInstallModes:                         false,
		operatorsv1alpha1.CSVReasonUnsupportedOperatorGroup:                    false,
		operatorsv1alpha1.CSVReasonNoTargetNamespaces:                          false,
		operatorsv1alpha1.CSVReasonInterOperatorGroupOwnerConflict:             false,
		operatorsv1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs: false,
		operatorsv1alpha1.CSVReasonNoOperatorGroup:                             false,
		operatorsv1alpha1.CSVReasonTooManyOperatorGroups:                       false,
		operatorsv1alpha1.CSVReasonComponentUnhealthy:                          true,
		operatorsv1alpha1.CSVReasonRequirementsNotMet:                          true,
	} {
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		csv.Status.Phase, csv.Status.Reason = operatorsv1alpha1.CSVPhaseFailed, reason
		if got := api.MayBeCopied(csv); got != want {
			t.Errorf("a version that failed for %s may be copied: %t, want %t", reason, got, want)
		}
	}
}
