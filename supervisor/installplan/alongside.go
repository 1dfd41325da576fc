package installplan

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/plan"
)

// kindOfCRDs is CustomResourceDefinition, with its group and version.
func kindOfCRDs() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: groupAPIExtensions, Version: "v1", Kind: kindCRD}
}

// setAlongside writes the versions that a definition was installed with, in place of those
// that it names.
func setAlongside(crd metav1.Object, versions []types.NamespacedName) {
	annotations := map[string]string{}
	for key, value := range crd.GetAnnotations() {
		if !strings.HasPrefix(key, plan.PrefixAlongside) {
			annotations[key] = value
		}
	}
	for _, v := range versions {
		annotations[alongsideKey(v)] = v.String()
	}
	crd.SetAnnotations(annotations)
}

// alongsideKey returns the annotation of a definition that names a version which it was installed
// with. The key has the FNV-1a hash of NAMESPACE/NAME, as in OLM.
func alongsideKey(version types.NamespacedName) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(version.String()))
	return fmt.Sprintf("%s%x", plan.PrefixAlongside, sum.Sum64())
}

// declaresConversion says whether a version brings the webhook that converts objects
// of a CustomResourceDefinition.
func declaresConversion(csv *unstructured.Unstructured, crd string) bool {
	return slices.Contains(conversionCRDs(csv), crd)
}

// keepConversion leaves a conversion as it is that works, or that another controller
// looks after (declared): without it, objects are stored in the form of one version
// under the name of another.
func keepConversion(wanted, live *unstructured.Unstructured, declared bool) {
	conversion, found, _ := unstructured.NestedMap(live.Object, "spec", "conversion")
	bundle, _, _ := unstructured.NestedString(conversion, "webhook", "clientConfig", "caBundle")
	if !declared && (conversion["strategy"] != "Webhook" || bundle == "") {
		return
	}
	unstructured.RemoveNestedField(wanted.Object, "spec", "conversion")
	if found {
		wanted.Object["spec"].(map[string]any)["conversion"] = conversion //nolint:errcheck,forcetypeassert // it was found to be a CustomResourceDefinition
	}
}
