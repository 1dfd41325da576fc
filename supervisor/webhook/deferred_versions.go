package webhook

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
)

// ServedVersionsValue returns the value of api.AnnotationServedVersions for versions of a definition that the
// webhook of csv will convert.
func ServedVersionsValue(csv types.NamespacedName, versions []string) string {
	return csv.String() + ":" + strings.Join(versions, ",")
}

// deferredVersions returns the unserved versions of a definition that will be served when the webhook of csv is set
// up.
func deferredVersions(crd *apiextensionsv1.CustomResourceDefinition, csv types.NamespacedName) []string {
	wanted, held := strings.CutPrefix(crd.Annotations[api.AnnotationServedVersions], ServedVersionsValue(csv, nil))
	if !held {
		return nil
	}
	return slices.DeleteFunc(strings.Split(wanted, ","), func(version string) bool {
		return !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == version && !v.Served
		})
	})
}

// WillServe reports whether a definition will serve a version when the webhook of csv is set up, which only csv
// can do.
func WillServe(crd *apiextensionsv1.CustomResourceDefinition, csv types.NamespacedName, version string) bool {
	return slices.Contains(deferredVersions(crd, csv), version)
}

// isConversionDeferred reports whether the objects of a definition are not converted until the webhook of csv
// answers.
func isConversionDeferred(crd *apiextensionsv1.CustomResourceDefinition, csv types.NamespacedName) bool {
	return crd.Annotations[api.AnnotationConversion] == csv.String()
}

// StorageVersionValue returns the value of api.AnnotationStorageVersion for a version of a definition that the
// webhook of csv will convert to.
func StorageVersionValue(csv types.NamespacedName, version string) string {
	return csv.String() + ":" + version
}

// deferredStorage returns the version in which a definition will store its objects when the webhook of csv answers;
// empty if there is none.
func deferredStorage(crd *apiextensionsv1.CustomResourceDefinition, csv types.NamespacedName) string {
	wanted, held := strings.CutPrefix(crd.Annotations[api.AnnotationStorageVersion], StorageVersionValue(csv, ""))
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == wanted })
	if !held || i < 0 || crd.Spec.Versions[i].Storage {
		return ""
	}
	return wanted
}

// RemoveAnnotations returns the change that removes the annotations for the webhook of csv, which will never answer;
// nil if there are none.
func RemoveAnnotations(crd *apiextensionsv1.CustomResourceDefinition, csv types.NamespacedName) *Change {
	var keys []string
	if isConversionDeferred(crd, csv) {
		keys = append(keys, api.AnnotationConversion)
	}
	if strings.HasPrefix(crd.Annotations[api.AnnotationStorageVersion], StorageVersionValue(csv, "")) {
		keys = append(keys, api.AnnotationStorageVersion)
	}
	if strings.HasPrefix(crd.Annotations[api.AnnotationServedVersions], ServedVersionsValue(csv, nil)) {
		keys = append(keys, api.AnnotationServedVersions)
	}
	if len(keys) == 0 {
		return nil
	}
	return &Change{RemovedAnnotations: keys}
}
