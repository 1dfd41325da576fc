package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/compressed"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// Package is a package of a catalog, in the form in which it is stored.
type Package struct {
	Name string
	// Icon is where the icon is read.
	Icon IconSource

	// labels are the labels that the content determines.
	labels map[string]string
	// content is the JSON of a Content without its first brace.
	content compressed.Text
}

// IconSource names the channel, and the bundle at its head with its ClusterServiceVersion, that has the icon of a package.
// It is zero if the package has no icon.
type IconSource struct{ Channel, Bundle, CSV string }

// NewPackage returns a package with the channels whose heads are known. It is nil without any such channel.
func NewPackage(z *compressed.Compressor, pkg *content.Package, heads map[string]Head) (*Package, error) {
	c := Content{PackageName: pkg.Name, Deprecation: deprecation(pkg.Deprecation)}
	for _, channel := range pkg.Channels {
		head, known := heads[channel.Name]
		if !known {
			continue
		}
		c.Channels = append(c.Channels, Channel{
			Name: channel.Name, CurrentCSV: head.Name, CurrentCSVDesc: head.Description,
			Deprecation: deprecation(channel.Deprecation), Entries: entries(channel),
		})
	}
	if len(c.Channels) == 0 {
		return nil, nil //nolint:nilnil // absence is documented
	}
	slices.SortFunc(c.Channels, func(x, y Channel) int { return strings.Compare(x.Name, y.Name) })
	c.DefaultChannel = pkg.DefaultChannel
	shown, known := heads[c.DefaultChannel]
	if !known {
		shown = heads[c.Channels[0].Name]
		if c.DefaultChannel != "" {
			c.DefaultChannel = c.Channels[0].Name
		}
	}
	c.Provider = shown.Description.Provider
	text, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encoding package %s: %w", pkg.Name, err)
	}
	p := &Package{Name: pkg.Name, labels: map[string]string{labelProvider: c.Provider.Name, labelProviderURL: c.Provider.URL}}
	if p.content, err = z.Compress(text[1:]); err != nil {
		return nil, fmt.Errorf("storing package %s: %w", pkg.Name, err)
	}
	maps.Copy(p.labels, shown.Labels)
	if c.DefaultChannel != "" && shown.HasIcon {
		p.Icon = IconSource{Channel: c.DefaultChannel, Bundle: shown.Bundle, CSV: shown.Name}
	}
	return p, nil
}

// Compact moves the contents of packages to memory in which they take less. It is called before the packages are used.
func Compact(packages []*Package) error {
	contents := make([]*compressed.Text, 0, len(packages))
	for _, p := range packages {
		contents = append(contents, &p.content)
	}
	if err := compressed.Move(contents); err != nil {
		return fmt.Errorf("storing %d packages: %w", len(packages), err)
	}
	return nil
}

// deprecation returns a deprecation with a message; nil for none.
func deprecation(message string) *Deprecation {
	if message == "" {
		return nil
	}
	return &Deprecation{Message: message}
}

// entries returns the versions of a channel, newest first. It omits those with the property olm.deprecated.
func entries(channel *content.Channel) []Entry {
	shown := slices.DeleteFunc(slices.Clone(channel.Entries), func(e *content.Entry) bool { return e.Bundle.Subject.Deprecated })
	slices.SortFunc(shown, func(x, y *content.Entry) int {
		return cmp.Or(y.Bundle.Subject.Version.Compare(x.Bundle.Subject.Version), strings.Compare(x.Bundle.Name, y.Bundle.Name))
	})
	out := make([]Entry, 0, len(shown))
	for _, e := range shown {
		version := e.Bundle.Subject.Version.String()
		if version == unknownVersion {
			version = ""
		}
		out = append(out, Entry{Name: e.Bundle.Name, Version: version, Deprecation: deprecation(e.Bundle.Deprecation)})
	}
	return out
}

// unknownVersion is the version of bundles that have none.
const unknownVersion = "0.0.0"

// Labels of PackageManifests.
const (
	labelCatalog          = "catalog"
	labelCatalogNamespace = "catalog-namespace"
	labelProvider         = "provider"
	labelProviderURL      = "provider-url"
	supported             = "supported"
)

// Labels returns the labels of a package of a catalog.
func (p *Package) Labels(source *Source) map[string]string {
	out := make(map[string]string, len(source.Labels)+len(p.labels)+4)
	maps.Copy(out, source.Labels)
	maps.Copy(out, p.labels)
	// Labels of a ClusterServiceVersion must not hide from which catalog it comes.
	out[labelCatalog], out[labelCatalogNamespace] = source.Name, source.Namespace
	for prefix, standard := range map[string]string{api.PrefixOS: "linux", api.PrefixArch: "amd64"} {
		if !hasPrefix(out, prefix) {
			out[prefix+standard] = supported
		}
	}
	return out
}

func hasPrefix(labels map[string]string, prefix string) bool {
	for key := range labels {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// catalogStatus is the part of the status that the CatalogSource determines.
type catalogStatus struct {
	CatalogSource            string `doc:"Name of the CatalogSource."      json:"catalogSource"`
	CatalogSourceDisplayName string `doc:"Name of the catalog for users."  json:"catalogSourceDisplayName"`
	CatalogSourcePublisher   string `doc:"Publisher of the catalog."       json:"catalogSourcePublisher"`
	CatalogSourceNamespace   string `doc:"Namespace of the CatalogSource." json:"catalogSourceNamespace"`
}

// Status is the status of a PackageManifest.
type Status struct {
	catalogStatus
	Content
}

// StatusJSON returns the JSON of the Status of a package of a catalog.
func (p *Package) StatusJSON(source *Source) ([]byte, error) {
	head, rest, err := p.StatusParts(source)
	if err != nil {
		return nil, err
	}
	text, err := rest.Bytes()
	if err != nil {
		return nil, fmt.Errorf("reading package %s: %w", p.Name, err)
	}
	return append(head, text...), nil
}

// StatusParts returns two texts that are the JSON of StatusJSON when they are joined.
func (p *Package) StatusParts(source *Source) (head []byte, rest compressed.Text, err error) {
	head, err = json.Marshal(catalogStatus{source.Name, source.DisplayName, source.Publisher, source.Namespace})
	if err != nil {
		return nil, compressed.Text{}, fmt.Errorf("encoding the catalog of package %s: %w", p.Name, err)
	}
	head[len(head)-1] = ','
	return head, p.content, nil
}
