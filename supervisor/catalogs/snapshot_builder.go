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
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
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

// snapshotBuilder builds a Snapshot from the messages of a catalog server.
type snapshotBuilder struct {
	builder  *content.Builder
	packages map[string]*packageInfo
	listed   map[bundleKey]sum
	sums     []sum
	limit    int64
	// entries is the number of messages so far. reserved is the number of bytes that it holds
	// besides its builder. Both are limited.
	entries  int
	reserved int64
}

// recordBytes estimates the memory of a small record without its strings: a digest or a few string
// headers, and a map slot.
const recordBytes = 128

// packageInfo holds the attributes of a package that are not part of a bundle.
type packageInfo struct{ defaultChannel, deprecation string }

func newSnapshotBuilder(limit int64) *snapshotBuilder {
	return &snapshotBuilder{builder: content.NewBuilder(limit), packages: map[string]*packageInfo{}, listed: map[bundleKey]sum{}, limit: limit}
}

// addListed adds one channel entry of api.Registry, including its manifests.
func (b *snapshotBuilder) addListed(entry *api.Bundle) error {
	if len(entry.GetObject()) > 0 && entry.GetBundlePath() == "" {
		var digest sum
		if _, err := hex.Decode(digest[:], []byte(plansteps.Digest(entry.GetObject()))); err != nil {
			return fmt.Errorf("digest of the manifests of bundle %s of package %s: %w", entry.GetCsvName(), entry.GetPackageName(), err)
		}
		if err := b.reserve(entry.GetPackageName(), recordBytes+len(entry.GetCsvName())+len(entry.GetPackageName())); err != nil {
			return err
		}
		b.listed[bundleKey{pkg: entry.GetPackageName(), name: entry.GetCsvName()}] = digest
	}
	return b.add(entry, listedBundle(entry))
}

// addPaged adds one channel entry of the extension API.
func (b *snapshotBuilder) addPaged(entry *registryv1.Bundle) error {
	if err := b.add(entry, pagedBundle(entry)); err != nil {
		return err
	}
	if entry.GetInDefaultChannel() && b.pkg(entry.GetPackage()).defaultChannel != entry.GetChannel() {
		if err := b.reserve(entry.GetPackage(), len(entry.GetChannel())); err != nil {
			return err
		}
		b.pkg(entry.GetPackage()).defaultChannel = entry.GetChannel()
	}
	return nil
}

// add adds a channel entry. m is the message that l was converted from.
func (b *snapshotBuilder) add(m proto.Message, l content.ChannelEntry) error {
	if err := b.addDigest(m); err != nil {
		return fmt.Errorf("bundle %s of package %s: %w", l.Bundle, l.Package, err)
	}
	if b.packages[l.Package] == nil {
		if err := b.reserve(l.Package, recordBytes+len(l.Package)); err != nil {
			return err
		}
		b.pkg(l.Package)
	}
	if err := b.builder.Add(l); err != nil {
		return unusable(err)
	}
	return nil
}

// addPackage adds the parts of a GetPackage reply that the bundles lack.
func (b *snapshotBuilder) addPackage(p *api.Package) error {
	if err := b.addDigest(p); err != nil {
		return fmt.Errorf("package %s: %w", p.GetName(), err)
	}
	if err := b.reserve(p.GetName(), recordBytes+proto.Size(p)); err != nil {
		return err
	}
	*b.pkg(p.GetName()) = packageInfo{defaultChannel: p.GetDefaultChannelName(), deprecation: deprecationOf(p.GetDeprecation())}
	for _, c := range p.GetChannels() {
		if d := c.GetDeprecation(); d != nil {
			b.builder.DeprecateChannel(p.GetName(), c.GetName(), deprecationOf(d))
		}
	}
	return nil
}

// addDeprecation adds a deprecation of the extension API.
func (b *snapshotBuilder) addDeprecation(d *registryv1.DeprecatedObject) error {
	if err := b.addDigest(d); err != nil {
		return fmt.Errorf("deprecation in package %s: %w", d.GetPackage(), err)
	}
	if err := b.reserve(d.GetPackage(), recordBytes+proto.Size(d)); err != nil {
		return err
	}
	switch message := deprecationText(d.GetMessage()); d.GetKind() {
	case registryv1.DeprecatedKind_DEPRECATED_KIND_PACKAGE:
		b.pkg(d.GetPackage()).deprecation = message
	case registryv1.DeprecatedKind_DEPRECATED_KIND_CHANNEL:
		b.builder.DeprecateChannel(d.GetPackage(), d.GetName(), message)
	case registryv1.DeprecatedKind_DEPRECATED_KIND_BUNDLE:
		b.builder.DeprecateBundle(d.GetPackage(), d.GetName(), message)
	case registryv1.DeprecatedKind_DEPRECATED_KIND_UNSPECIFIED:
	}
	return nil
}

// reserve adds size to the memory that packages take besides their bundles. It returns an error above
// the limit.
func (b *snapshotBuilder) reserve(pkg string, size int) error {
	if b.reserved += int64(size); b.reserved > b.limit {
		return unusable(fmt.Errorf("its packages and deprecations, up to package %s, take more than %d bytes; split the catalog", pkg, b.limit))
	}
	return nil
}

// pkg returns the description of a package and creates it if necessary.
func (b *snapshotBuilder) pkg(name string) *packageInfo {
	if b.packages[name] == nil {
		b.packages[name] = &packageInfo{}
	}
	return b.packages[name]
}

// packageNames returns the sorted names of all packages that messages have mentioned so far.
func (b *snapshotBuilder) packageNames() []string {
	names := make([]string, 0, len(b.packages))
	for name := range b.packages {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// snapshot returns the Snapshot of everything that was added. The digest includes the digest that
// the server announces, because pages carry no manifests.
func (b *snapshotBuilder) snapshot(announced string) *Snapshot {
	// Servers send in any order. Sorting makes the digest independent of it.
	slices.SortFunc(b.sums, func(x, y sum) int { return bytes.Compare(x[:], y[:]) })
	total := sha256.New()
	_, _ = fmt.Fprintf(total, "%d:%s", len(announced), announced)
	for _, s := range b.sums {
		_, _ = total.Write(s[:])
	}
	for name, d := range b.packages {
		b.builder.Describe(name, d.defaultChannel, d.deprecation)
	}
	shared := &sharedContent{content: b.builder.Build(), listed: b.listed}
	return &Snapshot{Content: shared.content, Digest: hex.EncodeToString(total.Sum(nil)), shared: shared, announced: announced}
}

// addDigest counts a message and records its digest.
func (b *snapshotBuilder) addDigest(m proto.Message) error {
	b.entries++
	if b.entries > maxEntries {
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
	b.sums = append(b.sums, sum(digest.Sum(nil)))
	b.reserved += int64(len(sum{}))
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
