package catalogquery

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// listKind is the kind of the lists of PackageManifests.
var listKind = schema.GroupVersionKind{Group: "packages.operators.coreos.com", Version: "v1", Kind: "PackageManifestList"}

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

// RefusedError joins the error that refuses a catalog with that of the PackageManifests, which were read instead.
func RefusedError(refused, manifests error) error {
	return fmt.Errorf("%w; PackageManifests cannot be read either: %w", refused, manifests)
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
func (m *Manifest) head() ManifestChannel {
	i := slices.IndexFunc(m.Status.Channels, func(c ManifestChannel) bool { return c.Name == m.Status.DefaultChannel })
	if i < 0 {
		return ManifestChannel{}
	}
	return m.Status.Channels[i]
}

func (m *Manifest) match() Match {
	head := m.head()
	match := Match{
		Catalog: m.Catalog().String(), Package: m.Metadata.Name, DisplayName: head.CurrentCSVDesc.DisplayName, Provider: m.Status.Provider.Name,
		Channel: m.Status.DefaultChannel, Version: head.CurrentCSVDesc.Version,
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
	for _, served := range head.APIServiceDefinitions.Owned {
		words = append(words, served.Group, served.Kind, served.DisplayName)
	}
	return strings.Join(words, "\n")
}

// maxContent is the maximum memory of the content of a package, in bytes.
const maxContent = 64 << 20

// Offer returns a package of a catalog and its content; nil if the catalog lacks it. The content has the versions, but
// neither their dependencies nor their upgrade paths: each version replaces the next older one.
func (m Manifests) Offer(catalog types.NamespacedName, name string) (*Manifest, *content.Catalog, error) {
	i := slices.IndexFunc(m, func(one Manifest) bool { return one.Metadata.Name == name && one.Catalog() == catalog })
	if i < 0 {
		return nil, nil, nil
	}
	b := content.NewBuilder(maxContent)
	p := &m[i]
	for _, channel := range p.Status.Channels {
		for _, entry := range channelEntries(name, channel) {
			if err := b.Add(entry); err != nil {
				return nil, nil, fmt.Errorf("reading PackageManifest %s of catalog %s: %w", name, catalog, err)
			}
		}
	}
	deprecation := ""
	if d := p.Status.Deprecation; d != nil {
		deprecation = d.Message
	}
	b.Describe(name, p.Status.DefaultChannel, deprecation)
	return p, b.Build(), nil
}

// channelEntries returns the entries of a channel, the head first.
func channelEntries(pkg string, channel ManifestChannel) []content.ChannelEntry {
	head := ManifestEntry{Name: channel.CurrentCSV, Version: channel.CurrentCSVDesc.Version}
	entries := []content.ChannelEntry{{Package: pkg, Channel: channel.Name, Bundle: head.Name, Version: head.Version}}
	for _, e := range channel.Entries {
		if e.Name == head.Name {
			continue
		}
		entries[len(entries)-1].Replaces = e.Name
		entries = append(entries, content.ChannelEntry{Package: pkg, Channel: channel.Name, Bundle: e.Name, Version: e.Version})
	}
	return entries
}

// InstallModes returns the install modes of the head of a channel.
func (m *Manifest) InstallModes(channel string) []operatorsv1alpha1.InstallMode {
	i := slices.IndexFunc(m.Status.Channels, func(c ManifestChannel) bool { return c.Name == channel })
	if i < 0 {
		return nil
	}
	return m.Status.Channels[i].CurrentCSVDesc.InstallModes
}
