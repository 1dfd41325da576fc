package catalogs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/supervisor/plan"
)

// Snapshot is what a catalog served at one moment, without the manifests. It is
// not changed after it was made.
type Snapshot struct {
	// Content is the part that resolution needs.
	Content *bundles.Catalog
	// Digest is the SHA-256, in hex, of all that was served. Two snapshots with
	// the same digest are the same.
	Digest string

	manifests map[bundleKey]string
	// announced is the server's own word for the content, empty when it has
	// none.
	announced string
}

type bundleKey struct{ pkg, name string }

// Manifests gives the digest of a bundle's manifests as plan.Digest makes it;
// empty when the catalog serves none for it.
func (s *Snapshot) Manifests(pkg, bundle string) string {
	return s.manifests[bundleKey{pkg: pkg, name: bundle}]
}

// assembly puts a snapshot together from the messages of a catalog.
type assembly struct {
	packages  map[string]*bundles.Package
	channels  map[[2]string]*bundles.Channel
	manifests map[bundleKey]string
	seen      map[bundleKey]bool
	sums      []string
}

func newAssembly() *assembly {
	return &assembly{
		packages:  map[string]*bundles.Package{},
		channels:  map[[2]string]*bundles.Channel{},
		manifests: map[bundleKey]string{},
		seen:      map[bundleKey]bool{},
	}
}

// addBundle takes one channel entry as ListBundles gives it.
func (a *assembly) addBundle(b *api.Bundle) error {
	if err := a.sum(b); err != nil {
		return fmt.Errorf("bundle %s of package %s: %w", b.GetCsvName(), b.GetPackageName(), err)
	}
	pkg := a.pkg(b.GetPackageName())
	channel := a.channel(pkg, b.GetChannelName())
	channel.Entries = append(channel.Entries, bundles.Entry{
		Name: b.GetCsvName(), Replaces: b.GetReplaces(), Skips: b.GetSkips(), SkipRange: b.GetSkipRange(),
	})
	key := bundleKey{pkg: pkg.Name, name: b.GetCsvName()}
	if a.seen[key] {
		return nil
	}
	a.seen[key] = true
	pkg.Bundles = append(pkg.Bundles, &bundles.Bundle{
		Name: b.GetCsvName(), Package: pkg.Name, Image: b.GetBundlePath(), Properties: propertiesOf(b),
	})
	if len(b.GetObject()) > 0 && b.GetBundlePath() == "" {
		a.manifests[key] = plan.Digest(b.GetObject())
	}
	return nil
}

// addPackage takes what GetPackage says beyond the bundles.
func (a *assembly) addPackage(p *api.Package) error {
	if err := a.sum(p); err != nil {
		return fmt.Errorf("package %s: %w", p.GetName(), err)
	}
	pkg := a.pkg(p.GetName())
	pkg.DefaultChannel = p.GetDefaultChannelName()
	var deprecations []bundles.Deprecation
	deprecate := func(schema, name string, d *api.Deprecation) {
		if d != nil {
			reference := bundles.Reference{Schema: schema, Name: name}
			deprecations = append(deprecations, bundles.Deprecation{Reference: reference, Message: d.GetMessage()})
		}
	}
	deprecate(bundles.SchemaPackage, "", p.GetDeprecation())
	for _, c := range p.GetChannels() {
		deprecate(bundles.SchemaChannel, c.GetName(), c.GetDeprecation())
	}
	if len(deprecations) > 0 {
		pkg.Deprecations = []bundles.DeprecationList{{Entries: deprecations}}
	}
	return nil
}

// packageNames are the packages that the bundles so far belong to, sorted.
func (a *assembly) packageNames() []string {
	names := make([]string, 0, len(a.packages))
	for name := range a.packages {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// snapshot ends the assembly.
func (a *assembly) snapshot() *Snapshot {
	content := &bundles.Catalog{}
	for _, name := range a.packageNames() {
		pkg := a.packages[name]
		slices.SortFunc(pkg.Channels, func(x, y *bundles.Channel) int { return strings.Compare(x.Name, y.Name) })
		slices.SortFunc(pkg.Bundles, func(x, y *bundles.Bundle) int { return cmp.Compare(x.Name, y.Name) })
		content.Packages = append(content.Packages, pkg)
	}
	// Servers are free in the order in which they send; the digest is not to
	// depend on it.
	slices.Sort(a.sums)
	total := sha256.Sum256([]byte(strings.Join(a.sums, "")))
	return &Snapshot{Content: content, Digest: hex.EncodeToString(total[:]), manifests: a.manifests}
}

func (a *assembly) pkg(name string) *bundles.Package {
	if a.packages[name] == nil {
		a.packages[name] = &bundles.Package{Name: name}
	}
	return a.packages[name]
}

func (a *assembly) channel(pkg *bundles.Package, name string) *bundles.Channel {
	key := [2]string{pkg.Name, name}
	if a.channels[key] == nil {
		a.channels[key] = &bundles.Channel{Name: name, Package: pkg.Name}
		pkg.Channels = append(pkg.Channels, a.channels[key])
	}
	return a.channels[key]
}

func (a *assembly) sum(m proto.Message) error {
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding it for its digest: %w", err)
	}
	sum := sha256.Sum256(text)
	a.sums = append(a.sums, string(sum[:]))
	return nil
}

// propertiesOf gives a bundle's properties; for a catalog so old that it sends
// none, what its other fields say.
func propertiesOf(b *api.Bundle) []bundles.Property {
	properties := make([]bundles.Property, 0, len(b.GetProperties()))
	for _, p := range b.GetProperties() {
		properties = append(properties, bundles.Property{Type: p.GetType(), Value: json.RawMessage(p.GetValue())})
	}
	hasPackage := slices.ContainsFunc(properties, func(p bundles.Property) bool { return p.Type == bundles.TypePackage })
	if hasPackage {
		return properties
	}
	value, err := json.Marshal(bundles.PackageProperty{PackageName: b.GetPackageName(), Version: b.GetVersion()})
	if err != nil {
		// Strings always marshal; without the property the bundle just says less.
		return properties
	}
	return append(properties, bundles.Property{Type: bundles.TypePackage, Value: value})
}
