package installplan

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// holdStorage leaves the storage version of a CustomResourceDefinition unchanged, where the version
// that is being installed brings a conversion webhook. Until the webhook runs, no client could read
// objects of the new storage version. An annotation records the wanted storage version and the
// webhook's version for the controller of versions.
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
	annotate(wanted, api.AnnotationStorageVersion, webhook.HoldStorage(csv, to))
}

// holdConversion allows a CustomResourceDefinition to stay without conversion until its new webhook
// runs. It does so only if all versions that are to be served are served without conversion now. An
// annotation records this for the controller of versions. A new version must not be used without
// conversion.
func holdConversion(wanted, live *unstructured.Unstructured, csv types.NamespacedName) {
	strategy, _, _ := unstructured.NestedString(live.Object, "spec", "conversion", "strategy")
	if strategy == string(apiextensionsv1.WebhookConverter) {
		return
	}
	before := servedIn(live)
	if slices.ContainsFunc(servedIn(wanted), func(v string) bool { return !slices.Contains(before, v) }) {
		return
	}
	annotate(wanted, api.AnnotationConversion, csv.String())
}

// holdServed stops serving versions of a CustomResourceDefinition that need the webhook of the
// version that is being installed, until the webhook is set up. These are the versions that are not
// served without conversion now. live is nil for a new definition, of which only the storage
// version is served.
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
	annotate(wanted, api.AnnotationServedVersions, webhook.HoldServed(csv, held))
}

// servedIn returns the names of the versions that a CustomResourceDefinition serves.
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

// annotate sets an annotation of a definition.
func annotate(crd *unstructured.Unstructured, key, value string) {
	annotations := crd.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	crd.SetAnnotations(annotations)
}

// storageOf returns the storage version of a CustomResourceDefinition; empty for none.
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

// versionNamed returns a version of a CustomResourceDefinition if it has that name, else nil.
func versionNamed(o any, name string) map[string]any {
	if v, ok := o.(map[string]any); ok && v["name"] == name {
		return v
	}
	return nil
}
