package rollback

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bundle holds the relevant parts of an older version: its ClusterServiceVersion and its definitions.
type Bundle struct {
	Version     *operatorsv1alpha1.ClusterServiceVersion
	Definitions []*apiextensionsv1.CustomResourceDefinition
}

// Read reads the relevant manifests of a bundle from JSON texts.
func Read(manifests []string) (Bundle, error) {
	b := Bundle{Version: &operatorsv1alpha1.ClusterServiceVersion{}}
	for i, text := range manifests {
		kind := &metav1.TypeMeta{}
		if err := json.Unmarshal([]byte(text), kind); err != nil {
			return Bundle{}, fmt.Errorf("manifest %d of %d is not a JSON object: %w", i+1, len(manifests), err)
		}
		var err error
		switch kind.Kind {
		case operatorsv1alpha1.ClusterServiceVersionKind:
			err = json.Unmarshal([]byte(text), b.Version)
		case "CustomResourceDefinition":
			crd := &apiextensionsv1.CustomResourceDefinition{}
			err = json.Unmarshal([]byte(text), crd)
			b.Definitions = append(b.Definitions, crd)
		}
		if err != nil {
			return Bundle{}, fmt.Errorf("reading the %s that is manifest %d of %d: %w", kind.Kind, i+1, len(manifests), err)
		}
	}
	return b, nil
}

// converts reports whether the version has the webhook that converts the objects of a definition.
func (b Bundle) converts(name string) bool {
	return slices.Contains(Converted(b.Version), name)
}

// Obstacles returns the reasons why a definition of the bundle must not replace the live one: stored objects
// could no longer be read. Lost returns the fields that would be lost.
func (b Bundle) Obstacles(live, older *apiextensionsv1.CustomResourceDefinition) []string {
	var list []string
	for _, stored := range live.Status.StoredVersions {
		if !has(older, stored) {
			list = append(list, fmt.Sprintf("CustomResourceDefinition %s of %s has no version %s, in which objects are stored (status.storedVersions)",
				live.Name, b.Version.Name, stored))
		}
	}
	if webhook(live) && !webhook(older) && !b.converts(live.Name) && needsConversion(live, older) {
		list = append(list, fmt.Sprintf("objects of CustomResourceDefinition %s are converted between versions by a webhook, which %s does not have",
			live.Name, b.Version.Name))
	}
	return list
}

// Unserved returns the versions of a definition that another ClusterServiceVersion, which remains, depends on
// and the older definition does not serve.
func Unserved(older *apiextensionsv1.CustomResourceDefinition, remaining *operatorsv1alpha1.ClusterServiceVersion) []string {
	var list []string
	needed := remaining.Spec.CustomResourceDefinitions
	for _, d := range slices.Concat(needed.Owned, needed.Required) {
		if d.Name == older.Name && !serves(older, d.Version) {
			list = append(list, fmt.Sprintf("clusterserviceversion %s/%s needs version %s of CustomResourceDefinition %s, which the older one does not serve",
				remaining.Namespace, remaining.Name, d.Version, older.Name))
		}
	}
	return list
}

// Missing returns the versions that a ClusterServiceVersion to restore depends on and the live definitions, by
// name, do not serve.
func Missing(restored *operatorsv1alpha1.ClusterServiceVersion, live map[string]*apiextensionsv1.CustomResourceDefinition) []string {
	var list []string
	for _, owned := range restored.Spec.CustomResourceDefinitions.Owned {
		crd := live[owned.Name]
		if crd != nil && !serves(crd, owned.Version) {
			list = append(list, fmt.Sprintf("CustomResourceDefinition %s, as it is now, does not serve version %s, which %s needs", owned.Name, owned.Version, restored.Name))
		}
	}
	return list
}

func has(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	return versionOf(crd, version) != nil
}

func serves(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	v := versionOf(crd, version)
	return version == "" || (v != nil && v.Served)
}

func versionOf(crd *apiextensionsv1.CustomResourceDefinition, version string) *apiextensionsv1.CustomResourceDefinitionVersion {
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	if i < 0 {
		return nil
	}
	return &crd.Spec.Versions[i]
}

func webhook(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

// needsConversion reports whether objects need conversion: they are stored in one version, and the older definition
// serves them in another.
func needsConversion(live, older *apiextensionsv1.CustomResourceDefinition) bool {
	for _, stored := range live.Status.StoredVersions {
		for _, v := range older.Spec.Versions {
			if v.Served && v.Name != stored {
				return true
			}
		}
	}
	return false
}

// describe returns a path as text.
func describe(path []string) string {
	var b strings.Builder
	for _, segment := range path {
		switch segment {
		case items:
			b.WriteString("[]")
		case values:
			b.WriteString(".*")
		default:
			b.WriteString("." + segment)
		}
	}
	return strings.TrimPrefix(b.String(), ".")
}
