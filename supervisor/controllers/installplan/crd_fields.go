package installplan

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

const (
	kindCRD            = "CustomResourceDefinition"
	kindSecret         = "Secret"
	groupAPIExtensions = "apiextensions.k8s.io"
)

// kindOfCRDs returns the GroupVersionKind of CustomResourceDefinition.
func kindOfCRDs() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: groupAPIExtensions, Version: "v1", Kind: kindCRD}
}

// setInstalledAlongside records on a definition the versions that it was installed with. It replaces all
// earlier records. A version without a name is none.
func setInstalledAlongside(crd metav1.Object, versions []types.NamespacedName) {
	annotations := map[string]string{}
	for key, value := range crd.GetAnnotations() {
		if !strings.HasPrefix(key, api.PrefixInstalledAlongside) {
			annotations[key] = value
		}
	}
	for _, v := range versions {
		if v.Name != "" {
			annotations[installedAlongsideKey(v)] = v.String()
		}
	}
	crd.SetAnnotations(annotations)
}

// installedAlongsideKey returns the key of the annotation with which a definition names a version
// that it was installed with. The key contains the FNV-1a hash of NAMESPACE/NAME, as in OLM.
func installedAlongsideKey(version types.NamespacedName) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(version.String()))
	return fmt.Sprintf("%s%x", api.PrefixInstalledAlongside, sum.Sum64())
}

// conversionCRDs returns the names of the definitions for which a version declares a
// conversion webhook.
func conversionCRDs(csv *unstructured.Unstructured) []string {
	webhooks, _, _ := unstructured.NestedSlice(csv.Object, "spec", "webhookdefinitions")
	var names []string
	for _, o := range webhooks {
		if w, ok := o.(map[string]any); ok && w["type"] == string(operatorsv1alpha1.ConversionWebhook) {
			converted, _, _ := unstructured.NestedStringSlice(w, "conversionCRDs")
			names = append(names, converted...)
		}
	}
	return names
}

// setDefaults sets the fields that the API server would set in a definition that lacks them. Those
// fields count as set by the plan that created the definition. A write without them would remove
// them, and the API server would set them again.
func setDefaults(crd *unstructured.Unstructured) {
	spec, is := crd.Object["spec"].(map[string]any)
	if !is {
		return
	}
	if _, has := spec["conversion"]; !has {
		spec["conversion"] = map[string]any{"strategy": string(apiextensionsv1.NoneConverter)}
	}
	names, is := spec["names"].(map[string]any)
	kind, _ := names["kind"].(string)
	if !is || kind == "" {
		return
	}
	for field, value := range map[string]string{"singular": strings.ToLower(kind), "listKind": kind + "List"} {
		if _, has := names[field]; !has {
			names[field] = value
		}
	}
}

// keepConversion copies the conversion of the live definition to the wanted one. It does so if the
// conversion has a webhook with a CA bundle, or if another controller sets it (declared). Without
// conversion, the API server would store objects in the form of one version under the name of
// another.
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

// deferStorage leaves the storage version of a CustomResourceDefinition unchanged, where the version
// that is being installed brings a conversion webhook. Until the webhook runs, no client could read
// objects of the new storage version. An annotation records the wanted storage version and the
// webhook's version for the controller of versions.
func deferStorage(wanted, live *unstructured.Unstructured, csv types.NamespacedName) {
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
	annotate(wanted, api.AnnotationStorageVersion, webhook.StorageVersionValue(csv, to))
}

// deferConversion allows a CustomResourceDefinition to stay without conversion until its new webhook
// runs. It does so only if all versions that are to be served are served without conversion now. An
// annotation records this for the controller of versions. A new version must not be used without
// conversion.
func deferConversion(wanted, live *unstructured.Unstructured, csv types.NamespacedName) {
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

// deferServed stops serving versions of a CustomResourceDefinition that need the webhook of the
// version that is being installed, until the webhook is set up. These are the versions that are not
// served without conversion now. live is nil for a new definition, of which only the storage
// version is served.
func deferServed(wanted, live *unstructured.Unstructured, csv types.NamespacedName) {
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
	annotate(wanted, api.AnnotationServedVersions, webhook.ServedVersionsValue(csv, held))
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
