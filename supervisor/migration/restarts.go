package migration

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandlery/chandlery/supervisor/api"
)

// restarts describes the operators that OLM rolls out after a handback. Their pods do not have the annotations that
// OLM copies from the version, or have settings that OLM does not know. It returns nothing if there are none.
func restarts(live objectsByKey) []string {
	var causes []string
	for _, key := range slices.Sorted(maps.Keys(live)) {
		o := live[key]
		_, configured := o.GetAnnotations()[api.AnnotationConfig]
		switch {
		case o.GetKind() == operatorsv1alpha1.SubscriptionKind && configured:
			causes = append(causes, fmt.Sprintf("the operator of Subscription %s/%s (annotation %s)", o.GetNamespace(), o.GetName(), api.AnnotationConfig))
		case o.GetKind() == "Deployment" && o.GetAnnotations()[api.AnnotationOperatorPullSecrets] != "":
			causes = append(causes, fmt.Sprintf("Deployment %s/%s (annotation %s of its catalog)",
				o.GetNamespace(), o.GetName(), api.AnnotationOperatorPullSecrets))
		case o.GetKind() == "Deployment":
			if different := differentAnnotations(o, live); len(different) > 0 {
				causes = append(causes, fmt.Sprintf("Deployment %s/%s (annotation %s of its version)", o.GetNamespace(), o.GetName(), strings.Join(different, ", ")))
			}
		}
	}
	if len(causes) == 0 {
		return nil
	}
	return []string{"OLM will roll out these operators, because it creates their pods differently: " + strings.Join(causes, "; ")}
}

// differentAnnotations returns the annotations of a version that the pods of its Deployment lack, or have with another
// value. Of those that the handback removes, it returns those that OLM copied while it ran beside the supervisors.
func differentAnnotations(d *unstructured.Unstructured, live objectsByKey) []string {
	labels := d.GetLabels()
	csv := live[labels[api.LabelOwnerKind]+" "+labels[api.LabelOwnerNamespace]+"/"+labels[api.LabelOwner]]
	if csv == nil || csv.GetKind() != operatorsv1alpha1.ClusterServiceVersionKind {
		return nil
	}
	pods, _, _ := unstructured.NestedStringMap(d.Object, "spec", "template", "metadata", "annotations")
	var different []string
	removed := addedKeys(csv).Annotations
	for key, value := range csv.GetAnnotations() {
		has, found := pods[key]
		is := !found || has != value
		if slices.Contains(removed, key) {
			is = found
		}
		if is {
			different = append(different, key)
		}
	}
	slices.Sort(different)
	return different
}
