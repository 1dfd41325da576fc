package plansteps

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/operator-framework/operator-registry/alpha/property"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
)

// InstalledAlongside returns the versions that a CustomResourceDefinition was installed with, sorted.
func InstalledAlongside(crd metav1.Object) []types.NamespacedName {
	var list []types.NamespacedName
	for key, value := range crd.GetAnnotations() {
		namespace, name, ok := strings.Cut(value, "/")
		if strings.HasPrefix(key, api.PrefixInstalledAlongside) && ok && namespace != "" && name != "" && !strings.Contains(name, "/") {
			list = append(list, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	slices.SortFunc(list, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// InstalledAlongsideKeys returns the keys of the annotations with which a CustomResourceDefinition names a version
// that it was installed with, sorted.
func InstalledAlongsideKeys(crd metav1.Object, version types.NamespacedName) []string {
	var keys []string
	named := version.String()
	for key, value := range crd.GetAnnotations() {
		if value == named && strings.HasPrefix(key, api.PrefixInstalledAlongside) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// PackageOf returns the package of a version by the properties of its bundle; empty if it has none.
func PackageOf(csv metav1.Object) string {
	var properties struct {
		Properties []property.Property `json:"properties"`
	}
	if json.Unmarshal([]byte(csv.GetAnnotations()[api.AnnotationProperties]), &properties) != nil {
		return ""
	}
	for _, p := range properties.Properties {
		if p.Type != property.TypePackage {
			continue
		}
		if decoded, err := property.Parse([]property.Property{p}); err == nil {
			return decoded.Packages[0].PackageName
		}
	}
	return ""
}

// IsOfPackage reports whether a version belongs to a package, by its label or its properties. No version
// belongs to the empty package.
func IsOfPackage(csv metav1.Object, pkg string) bool {
	if pkg == "" {
		return false
	}
	_, labelled := csv.GetLabels()[ComponentLabel(pkg, csv.GetNamespace())]
	return labelled || PackageOf(csv) == pkg
}
