package remove

import (
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// cleansUp reports whether the supervisor deletes the custom resources of a ClusterServiceVersion with it.
func cleansUp(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	return csv.Spec.Cleanup.Enabled && csv.Annotations[api.AnnotationSkipCleanup] != "true"
}

// cleanedObjects returns how many custom resources of a definition the clean-up of the own versions may delete: those in
// their target namespaces that no other version manages. cleanup is false if no own version of the definition has a
// clean-up.
func cleanedObjects(
	name string, objects []metav1.PartialObjectMetadata, all, own []operatorsv1alpha1.ClusterServiceVersion,
) (count int, cleanup bool) {
	var cleaning, others []*operatorsv1alpha1.ClusterServiceVersion
	for i := range all {
		switch csv := &all[i]; {
		case csv.IsCopied() || !csv.OwnsCRD(name):
		case !isAmong(csv, own):
			if csv.DeletionTimestamp == nil {
				others = append(others, csv)
			}
		case cleansUp(csv):
			cleaning = append(cleaning, csv)
		}
	}
	for i := range objects {
		namespace := objects[i].Namespace
		cleans := func(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
			targets, recorded := targetsOf(csv)
			return !recorded || includes(targets, namespace)
		}
		manages := func(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
			targets, recorded := targetsOf(csv)
			return recorded && includes(targets, namespace)
		}
		if slices.ContainsFunc(cleaning, cleans) && !slices.ContainsFunc(others, manages) {
			count++
		}
	}
	return count, len(cleaning) > 0
}

// targetsOf returns the target namespaces that a ClusterServiceVersion records. recorded is false without the record.
func targetsOf(csv *operatorsv1alpha1.ClusterServiceVersion) (namespaces []string, recorded bool) {
	text, recorded := csv.Annotations[operatorsv1.OperatorGroupTargetsAnnotationKey]
	return strings.Split(text, ","), recorded
}

// includes reports whether target namespaces include a namespace, which is empty for objects without one.
func includes(targets []string, namespace string) bool {
	return slices.Contains(targets, corev1.NamespaceAll) || slices.Contains(targets, namespace)
}

// isAmong reports whether a ClusterServiceVersion is in a list.
func isAmong(csv *operatorsv1alpha1.ClusterServiceVersion, list []operatorsv1alpha1.ClusterServiceVersion) bool {
	return slices.ContainsFunc(list, func(one operatorsv1alpha1.ClusterServiceVersion) bool { return one.UID == csv.UID })
}
