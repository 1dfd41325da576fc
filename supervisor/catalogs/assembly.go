package catalogs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/chandlery/chandlery/proto/api"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
	"github.com/chandlery/chandlery/supervisor/catalogs/content"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

const (
	// maxEntries limits the number of channel entries and deprecations of one catalog. The largest
	// catalogs in use have some ten thousand.
	maxEntries = 1_000_000
	// maxBytes limits the memory of one catalog's snapshot, in bytes. The largest catalogs in use
	// take some twenty megabytes.
	maxBytes = 128 << 20
)

// errUnusable marks content that cannot be used, however often it is read.
var errUnusable = errors.New("the content of the catalog cannot be used")

// unusable wraps err with errUnusable.
func unusable(err error) error { return fmt.Errorf("%w: %w", errUnusable, err) }

// assembly builds a Snapshot from the messages of a catalog server.
type assembly struct {
	builder  *content.Builder
	packages map[string]*description
	listed   map[bundleKey]sum
	sums     []sum
	limit    int64
	// entries is the number of messages so far. kept is the number of bytes that the assembly holds
	// besides its builder. Both are limited.
	entries int
	kept    int64
}

// keptBytes estimates the memory of a small record without its strings: a digest or a few string
// headers, and a map slot.
const keptBytes = 128

// description holds the attributes of a package that are not part of a bundle.
type description struct{ defaultChannel, deprecation string }

func newAssembly(limit int64) *assembly {
	return &assembly{builder: content.NewBuilder(limit), packages: map[string]*description{}, listed: map[bundleKey]sum{}, limit: limit}
}

// addListed adds one channel entry of api.Registry, including its manifests.
func (a *assembly) addListed(b *api.Bundle) error {
	if len(b.GetObject()) > 0 && b.GetBundlePath() == "" {
		var digest sum
		if _, err := hex.Decode(digest[:], []byte(plansteps.Digest(b.GetObject()))); err != nil {
			return fmt.Errorf("digest of the manifests of bundle %s of package %s: %w", b.GetCsvName(), b.GetPackageName(), err)
		}
		if err := a.keep(b.GetPackageName(), keptBytes+len(b.GetCsvName())+len(b.GetPackageName())); err != nil {
			return err
		}
		a.listed[bundleKey{pkg: b.GetPackageName(), name: b.GetCsvName()}] = digest
	}
	return a.add(b, listedBundle(b))
}

// addPaged adds one channel entry of the extension API.
func (a *assembly) addPaged(b *registryv1.Bundle) error {
	if err := a.add(b, pagedBundle(b)); err != nil {
		return err
	}
	if b.GetInDefaultChannel() && a.pkg(b.GetPackage()).defaultChannel != b.GetChannel() {
		if err := a.keep(b.GetPackage(), len(b.GetChannel())); err != nil {
			return err
		}
		a.pkg(b.GetPackage()).defaultChannel = b.GetChannel()
	}
	return nil
}

// add adds a channel entry. m is the message that l was converted from.
func (a *assembly) add(m proto.Message, l content.Listed) error {
	if err := a.sum(m); err != nil {
		return fmt.Errorf("bundle %s of package %s: %w", l.Bundle, l.Package, err)
	}
	if a.packages[l.Package] == nil {
		if err := a.keep(l.Package, keptBytes+len(l.Package)); err != nil {
			return err
		}
		a.pkg(l.Package)
	}
	if err := a.builder.Add(l); err != nil {
		return unusable(err)
	}
	return nil
}

// addPackage adds the parts of a GetPackage reply that the bundles lack.
func (a *assembly) addPackage(p *api.Package) error {
	if err := a.sum(p); err != nil {
		return fmt.Errorf("package %s: %w", p.GetName(), err)
	}
	if err := a.keep(p.GetName(), keptBytes+proto.Size(p)); err != nil {
		return err
	}
	*a.pkg(p.GetName()) = description{defaultChannel: p.GetDefaultChannelName(), deprecation: deprecationOf(p.GetDeprecation())}
	for _, c := range p.GetChannels() {
		if d := c.GetDeprecation(); d != nil {
			a.builder.DeprecateChannel(p.GetName(), c.GetName(), deprecationOf(d))
		}
	}
	return nil
}

// addDeprecation adds a deprecation of the extension API.
func (a *assembly) addDeprecation(d *registryv1.DeprecatedObject) error {
	if err := a.sum(d); err != nil {
		return fmt.Errorf("deprecation in package %s: %w", d.GetPackage(), err)
	}
	if err := a.keep(d.GetPackage(), keptBytes+proto.Size(d)); err != nil {
		return err
	}
	switch message := deprecationText(d.GetMessage()); d.GetKind() {
	case registryv1.DeprecatedKind_DEPRECATED_KIND_PACKAGE:
		a.pkg(d.GetPackage()).deprecation = message
	case registryv1.DeprecatedKind_DEPRECATED_KIND_CHANNEL:
		a.builder.DeprecateChannel(d.GetPackage(), d.GetName(), message)
	case registryv1.DeprecatedKind_DEPRECATED_KIND_BUNDLE:
		a.builder.DeprecateBundle(d.GetPackage(), d.GetName(), message)
	case registryv1.DeprecatedKind_DEPRECATED_KIND_UNSPECIFIED:
	}
	return nil
}

// keep adds size to the memory that packages take besides their bundles. It returns an error above
// the limit.
func (a *assembly) keep(pkg string, size int) error {
	if a.kept += int64(size); a.kept > a.limit {
		return unusable(fmt.Errorf("what it says of packages and deprecations, as of package %s, takes more than %d bytes; split the catalog", pkg, a.limit))
	}
	return nil
}

// pkg returns the description of a package and creates it if necessary.
func (a *assembly) pkg(name string) *description {
	if a.packages[name] == nil {
		a.packages[name] = &description{}
	}
	return a.packages[name]
}

// packageNames returns the sorted names of all packages that messages have mentioned so far.
func (a *assembly) packageNames() []string {
	names := make([]string, 0, len(a.packages))
	for name := range a.packages {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// snapshot returns the Snapshot of everything that was added. The digest includes the digest that
// the server announces, because pages carry no manifests.
func (a *assembly) snapshot(announced string) *Snapshot {
	// Servers send in any order. Sorting makes the digest independent of it.
	slices.SortFunc(a.sums, func(x, y sum) int { return bytes.Compare(x[:], y[:]) })
	total := sha256.New()
	_, _ = fmt.Fprintf(total, "%d:%s", len(announced), announced)
	for _, s := range a.sums {
		_, _ = total.Write(s[:])
	}
	for name, d := range a.packages {
		a.builder.Describe(name, d.defaultChannel, d.deprecation)
	}
	shared := &served{content: a.builder.Build(), listed: a.listed}
	return &Snapshot{Content: shared.content, Digest: hex.EncodeToString(total.Sum(nil)), shared: shared, announced: announced}
}

// sum counts a message and records its digest.
func (a *assembly) sum(m proto.Message) error {
	a.entries++
	if a.entries > maxEntries {
		return unusable(fmt.Errorf("it has more than %d channel entries and deprecations; split the catalog", maxEntries))
	}
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding it for its digest: %w", err)
	}
	// Messages of different types can have the same encoding but different meanings.
	digest := sha256.New()
	_, _ = fmt.Fprintf(digest, "%s:", m.ProtoReflect().Descriptor().FullName())
	_, _ = digest.Write(text)
	a.sums = append(a.sums, sum(digest.Sum(nil)))
	a.kept += int64(len(sum{}))
	return nil
}

// deprecationOf returns the message of a deprecation; empty for none.
func deprecationOf(d *api.Deprecation) string {
	if d == nil {
		return ""
	}
	return deprecationText(d.GetMessage())
}

// deprecationText returns message, or a default for an empty one.
func deprecationText(message string) string {
	if message == "" {
		return "deprecated without a reason"
	}
	return message
}
