package installplan

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/webhook"
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
	note(wanted, api.AnnotationStorageVersion, webhook.HoldStorage(csv, to))
}

// holdConversion lets objects of a CustomResourceDefinition go on without conversion,
// where the version that is being installed brings a webhook for them and all versions
// that are to be served are served without now. It is noted for the controller that waits
// for the webhook. A version that is new is not to be used without.
func holdConversion(wanted, live *unstructured.Unstructured, csv types.NamespacedName) {
	strategy, _, _ := unstructured.NestedString(live.Object, "spec", "conversion", "strategy")
	if strategy == string(apiextensionsv1.WebhookConverter) {
		return
	}
	before := servedIn(live)
	if slices.ContainsFunc(servedIn(wanted), func(v string) bool { return !slices.Contains(before, v) }) {
		return
	}
	note(wanted, api.AnnotationConversion, csv.String())
}

// holdServed leaves versions of a CustomResourceDefinition unserved that nobody could use
// without the webhook which the version that is being installed brings, until that is set
// up: those that are not served without conversion now. live is nil where the definition
// is new; then the version in which objects are stored can be used.
func holdServed(wanted, live *unstructured.Unstructured, csv types.NamespacedName) {
	before := []string{storageOf(wanted)}
	if live != nil {
		if strategy, _, _ := unstructured.NestedString(live.Object, "spec", "conversion", "strategy"); strategy == string(apiextensionsv1.WebhookConverter) {
			return
		}
		before = servedIn(live)
	}
	versions, _, err := unstructured.NestedSlice(wanted.Object, "spec", "versions")
	if err != nil {
		return
	}
	var held []string
	for _, o := range versions {
		if v, ok := o.(map[string]any); ok && v["served"] == true {
			if name, _ := v["name"].(string); !slices.Contains(before, name) {
				v["served"], held = false, append(held, name)
			}
		}
	}
	if len(held) == 0 {
		return
	}
	wanted.Object["spec"].(map[string]any)["versions"] = versions //nolint:errcheck,forcetypeassert // its versions were found there
	note(wanted, api.AnnotationServedVersions, webhook.HoldServed(csv, held))
}

// servedIn are the names of the versions that a CustomResourceDefinition serves.
func servedIn(crd *unstructured.Unstructured) []string {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var names []string
	for _, o := range versions {
		if v, ok := o.(map[string]any); ok && v["served"] == true {
			name, _ := v["name"].(string)
			names = append(names, name)
		}
	}
	return names
}

func note(crd *unstructured.Unstructured, key, value string) {
	annotations := crd.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	crd.SetAnnotations(annotations)
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
