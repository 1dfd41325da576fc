package serving

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AnnotationStorage names, on a CustomResourceDefinition, the version in which its
// objects are to be stored once the webhook answers that converts to it, and before it
// the ClusterServiceVersion whose webhook that is: NAMESPACE/NAME:VERSION. Whoever
// writes a definition before that webhook runs leaves the version of storage as it
// is, and this in its place: an object that is written meanwhile needs no conversion
// that nobody can do yet. No other webhook is known to convert to it, that of the
// version before least of all.
const AnnotationStorage = "chandlery.dev/storage-version"

// AnnotationConversion names, on a CustomResourceDefinition without conversion, the
// ClusterServiceVersion whose webhook is to convert its objects: NAMESPACE/NAME. They go on
// without until that answers, since all versions that are served have been served without
// before: calling nobody would fail requests that work, and guard nothing.
const AnnotationConversion = "chandlery.dev/conversion"

// unconverted says whether the objects of a definition are to go on without conversion
// until the webhook of csv answers.
func unconverted(crd *apiextensionsv1.CustomResourceDefinition, csv types.NamespacedName) bool {
	return crd.Annotations[AnnotationConversion] == csv.String()
}

// HoldStorage is the value of AnnotationStorage for a version of a definition that the
// webhook of csv is to convert to.
func HoldStorage(csv types.NamespacedName, version string) string {
	return csv.String() + ":" + version
}

// heldStorage is the version that a definition is to store its objects in when the
// webhook of csv answers, and does not yet; empty if there is none.
func heldStorage(crd *apiextensionsv1.CustomResourceDefinition, csv types.NamespacedName) string {
	wanted, held := strings.CutPrefix(crd.Annotations[AnnotationStorage], HoldStorage(csv, ""))
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
		keys = append(keys, AnnotationConversion)
	}
	if strings.HasPrefix(crd.Annotations[AnnotationStorage], HoldStorage(csv, "")) {
		keys = append(keys, AnnotationStorage)
	}
	if len(keys) == 0 {
		return nil
	}
	return &Change{Forgets: keys}
}
