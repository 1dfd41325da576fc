package installplan

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/plan"
)

// kindOfCRDs is CustomResourceDefinition, with its group and version.
func kindOfCRDs() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: groupAPIExtensions, Version: "v1", Kind: kindCRD}
}

// alongside reads those versions, sorted.
func alongside(crd metav1.Object) []types.NamespacedName {
	var list []types.NamespacedName
	for key, value := range crd.GetAnnotations() {
		namespace, name, ok := strings.Cut(value, "/")
		if strings.HasPrefix(key, plan.PrefixAlongside) && ok && namespace != "" && name != "" && !strings.Contains(name, "/") {
			list = append(list, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	slices.SortFunc(list, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// setAlongside writes them, in place of those that the definition names.
func setAlongside(crd metav1.Object, versions []types.NamespacedName) {
	annotations := map[string]string{}
	for key, value := range crd.GetAnnotations() {
		if !strings.HasPrefix(key, plan.PrefixAlongside) {
			annotations[key] = value
		}
	}
	for _, v := range versions {
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(v.Namespace + "/" + v.Name))
		annotations[fmt.Sprintf("%s%x", plan.PrefixAlongside, sum.Sum64())] = v.Namespace + "/" + v.Name
	}
	crd.SetAnnotations(annotations)
}

// declaresConversion says whether a version brings the webhook that converts objects
// of a CustomResourceDefinition.
func declaresConversion(csv *unstructured.Unstructured, crd string) bool {
	webhooks, _, _ := unstructured.NestedSlice(csv.Object, "spec", "webhookdefinitions")
	return slices.ContainsFunc(webhooks, func(o any) bool {
		w, ok := o.(map[string]any)
		if !ok || w["type"] != "ConversionWebhook" {
			return false
		}
		converted, _, _ := unstructured.NestedStringSlice(w, "conversionCRDs")
		return slices.Contains(converted, crd)
	})
}

// keepConversion leaves a conversion as it is that works, or that another controller
// looks after (declared): without it, objects are stored in the form of one version
// under the name of another. What this field manager owns of it is repeated, since
// leaving it out would clear it.
func keepConversion(wanted, live *unstructured.Unstructured, declared bool) {
	conversion, _, _ := unstructured.NestedMap(live.Object, "spec", "conversion")
	bundle, _, _ := unstructured.NestedString(conversion, "webhook", "clientConfig", "caBundle")
	if !declared && (conversion["strategy"] != "Webhook" || bundle == "") {
		return
	}
	unstructured.RemoveNestedField(wanted.Object, "spec", "conversion")
	if ownsConversion(live) {
		wanted.Object["spec"].(map[string]any)["conversion"] = conversion //nolint:errcheck,forcetypeassert // it was found to be a CustomResourceDefinition
	}
}

// ownsConversion says whether applying without spec.conversion would clear it.
func ownsConversion(live *unstructured.Unstructured) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == apply.FieldManager && f.Operation == metav1.ManagedFieldsOperationApply && f.FieldsV1 != nil &&
			strings.Contains(f.FieldsV1.GetRawString(), `"f:conversion":`)
	})
}
