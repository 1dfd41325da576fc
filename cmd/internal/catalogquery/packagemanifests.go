package catalogquery

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/manifest"
)

// listKind is the kind of the lists of PackageManifests.
var listKind = schema.GroupVersionKind{Group: "packages.operators.coreos.com", Version: "v1", Kind: "PackageManifestList"}

// Manifest is a PackageManifest.
type Manifest struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Status   struct {
		manifest.Content

		CatalogSource          string `json:"catalogSource"`
		CatalogSourceNamespace string `json:"catalogSourceNamespace"`
	} `json:"status"`
}

// Catalog returns the catalog of the package.
func (m *Manifest) Catalog() types.NamespacedName {
	return types.NamespacedName{Namespace: m.Status.CatalogSourceNamespace, Name: m.Status.CatalogSource}
}

// Manifests are the packages that a namespace can use. Users who may read only a namespace may list them, but may not
// connect to catalogs in other namespaces.
type Manifests []Manifest

// ListManifests returns the PackageManifests of a namespace.
func ListManifests(ctx context.Context, reader client.Reader, namespace string) (Manifests, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(listKind)
	if err := reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
		remedy := ""
		if apierrors.IsForbidden(err) {
			remedy = fmt.Sprintf("; permission to list packagemanifests.%s in namespace %s is missing", listKind.Group, namespace)
		}
		return nil, fmt.Errorf("listing the PackageManifests of namespace %s: %w%s", namespace, err, remedy)
	}
	return decodeManifests(list)
}

func decodeManifests(list *unstructured.UnstructuredList) (Manifests, error) {
	all := make(Manifests, len(list.Items))
	for i := range list.Items {
		text, err := list.Items[i].MarshalJSON()
		if err == nil {
			err = json.Unmarshal(text, &all[i])
		}
		if err != nil {
			return nil, fmt.Errorf("decoding PackageManifest %s: %w", list.Items[i].GetName(), err)
		}
	}
	return all, nil
}

// Catalogs returns the catalogs of the packages, sorted.
func (m Manifests) Catalogs() []types.NamespacedName {
	var all []types.NamespacedName
	for i := range m {
		all = append(all, m[i].Catalog())
	}
	slices.SortFunc(all, func(x, y types.NamespacedName) int {
		return cmp.Or(strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name))
	})
	return slices.Compact(all)
}

// Search returns the packages of a catalog that contain all words.
func (m Manifests) Search(catalog types.NamespacedName, words []string) []Match {
	matches := []Match{}
	for i := range m {
		if p := &m[i]; p.Catalog() == catalog && containsAll(strings.ToLower(p.text()), words) {
			matches = append(matches, p.match())
		}
	}
	return matches
}

// head returns the default channel; an empty one if there is none.
func (m *Manifest) head() manifest.Channel {
	i := slices.IndexFunc(m.Status.Channels, func(c manifest.Channel) bool { return c.Name == m.Status.DefaultChannel })
	if i < 0 {
		return manifest.Channel{}
	}
	return m.Status.Channels[i]
}

func (m *Manifest) match() Match {
	head := m.head()
	match := Match{
		Catalog: m.Catalog().String(), Package: m.Metadata.Name, DisplayName: head.CurrentCSVDesc.DisplayName, Provider: m.Status.Provider.Name,
		Channel: m.Status.DefaultChannel, Version: string(head.CurrentCSVDesc.Version),
	}
	if d := m.Status.Deprecation; d != nil {
		match.Deprecation = d.Message
	}
	return match
}

// text returns the text to search.
func (m *Manifest) text() string {
	head := m.head().CurrentCSVDesc
	words := []string{m.Metadata.Name, head.DisplayName, head.Annotations["categories"], m.Status.Provider.Name, head.LongDescription}
	words = append(words, head.Keywords...)
	for _, crd := range head.CustomResourceDefinitions.Owned {
		words = append(words, crd.Name, crd.Kind, crd.DisplayName)
	}
	return strings.Join(words, "\n")
}
