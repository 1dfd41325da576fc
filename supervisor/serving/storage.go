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

// AnnotationServed names, on a CustomResourceDefinition without conversion, versions that
// are to be served as soon as their conversion is set up, and before them the
// ClusterServiceVersion whose webhook that is: NAMESPACE/NAME:VERSION,VERSION. That may
// have to wait for long before its webhook is made. What is written in such a version
// before would be stored as if it were of another, and if conversion were set up before
// there is a webhook, all who look at every kind, as the garbage collector does, would fail.
const AnnotationServed = "chandlery.dev/served-versions"

// HoldServed is the value of AnnotationServed for versions of a definition that the
// webhook of csv is to convert.
func HoldServed(csv types.NamespacedName, versions []string) string {
	return csv.String() + ":" + strings.Join(versions, ",")
}

// heldServed are the versions of a definition that are to be served when the webhook of
// csv is set up, and are not yet.
func heldServed(crd *apiextensionsv1.CustomResourceDefinition, csv types.NamespacedName) []string {
	wanted, held := strings.CutPrefix(crd.Annotations[AnnotationServed], HoldServed(csv, nil))
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
	if strings.HasPrefix(crd.Annotations[AnnotationServed], HoldServed(csv, nil)) {
		keys = append(keys, AnnotationServed)
	}
	if len(keys) == 0 {
		return nil
	}
	return &Change{Forgets: keys}
}
