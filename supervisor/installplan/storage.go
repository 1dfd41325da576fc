package installplan

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/serving"
)

// holdStorage leaves objects of a CustomResourceDefinition stored in the version that
// they are stored in now, where the version that is being installed brings the webhook
// that converts to another: until that runs, nobody could read what is stored in the new
// form. In which version they are to be stored, and for whose webhook, is noted for the
// controller that waits for it.
func holdStorage(wanted, live *unstructured.Unstructured, csv types.NamespacedName) {
	from, to := storageOf(live), storageOf(wanted)
	versions, _, err := unstructured.NestedSlice(wanted.Object, "spec", "versions")
	known := slices.ContainsFunc(versions, func(o any) bool { return versionNamed(o, from) != nil })
	if err != nil || from == "" || from == to || !known {
		return
	}
	for _, o := range versions {
		if v, ok := o.(map[string]any); ok {
			v["storage"] = v["name"] == from
		}
	}
	wanted.Object["spec"].(map[string]any)["versions"] = versions //nolint:errcheck,forcetypeassert // its versions were found there
	annotations := wanted.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[serving.AnnotationStorage] = serving.HoldStorage(csv, to)
	wanted.SetAnnotations(annotations)
}

// storageOf is the version in which objects of a CustomResourceDefinition are stored.
func storageOf(crd *unstructured.Unstructured) string {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, o := range versions {
		if v, ok := o.(map[string]any); ok && v["storage"] == true {
			name, _ := v["name"].(string)
			return name
		}
	}
	return ""
}

// versionNamed gives a version of a CustomResourceDefinition if it has that name.
func versionNamed(o any, name string) map[string]any {
	if v, ok := o.(map[string]any); ok && v["name"] == name {
		return v
	}
	return nil
}
