package webhook

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
)

// HoldServed is the value of api.AnnotationServedVersions for versions of a definition that the
// webhook of csv is to convert.
func HoldServed(csv types.NamespacedName, versions []string) string {
	return csv.String() + ":" + strings.Join(versions, ",")
}

// heldServed are the versions of a definition that are to be served when the webhook of
// csv is set up, and are not yet.
func heldServed(crd *apiextensionsv1.CustomResourceDefinition, csv types.NamespacedName) []string {
	wanted, held := strings.CutPrefix(crd.Annotations[api.AnnotationServedVersions], HoldServed(csv, nil))
	if !held {
		return nil
	}
	return slices.DeleteFunc(strings.Split(wanted, ","), func(version string) bool {
		return !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == version && !v.Served
		})
	})
}

// WillServe says whether a definition is to serve a version when the webhook of csv is
// set up, which only csv can do.
func WillServe(crd *apiextensionsv1.CustomResourceDefinition, csv types.NamespacedName, version string) bool {
	return slices.Contains(heldServed(crd, csv), version)
}

// unconverted says whether the objects of a definition are to go on without conversion
// until the webhook of csv answers.
func unconverted(crd *apiextensionsv1.CustomResourceDefinition, csv types.NamespacedName) bool {
	return crd.Annotations[api.AnnotationConversion] == csv.String()
}

// HoldStorage is the value of api.AnnotationStorageVersion for a version of a definition that the
// webhook of csv is to convert to.
func HoldStorage(csv types.NamespacedName, version string) string {
	return csv.String() + ":" + version
}

// heldStorage is the version that a definition is to store its objects in when the
// webhook of csv answers, and does not yet; empty if there is none.
func heldStorage(crd *apiextensionsv1.CustomResourceDefinition, csv types.NamespacedName) string {
	wanted, held := strings.CutPrefix(crd.Annotations[api.AnnotationStorageVersion], HoldStorage(csv, ""))
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == wanted })
	if !held || i < 0 || crd.Spec.Versions[i].Storage {
		return ""
	}
	return wanted
}

// Forget says how to take back what a definition is to become for the webhook of csv,
// which is not going to answer any more; nil when there is nothing.
func Forget(crd *apiextensionsv1.CustomResourceDefinition, csv types.NamespacedName) *Change {
	var keys []string
	if unconverted(crd, csv) {
		keys = append(keys, api.AnnotationConversion)
	}
	if strings.HasPrefix(crd.Annotations[api.AnnotationStorageVersion], HoldStorage(csv, "")) {
		keys = append(keys, api.AnnotationStorageVersion)
	}
	if strings.HasPrefix(crd.Annotations[api.AnnotationServedVersions], HoldServed(csv, nil)) {
		keys = append(keys, api.AnnotationServedVersions)
	}
	if len(keys) == 0 {
		return nil
	}
	return &Change{Forgets: keys}
}
