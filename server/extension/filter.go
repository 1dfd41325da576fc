package extension

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	"google.golang.org/protobuf/proto"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/proto/api"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
)

// bundleFilter selects the bundles of a listing. The zero value selects all.
type bundleFilter struct {
	channels, names []string
	provides        *bundles.GVK
	versions        semver.Range
	headsOnly       bool
	defaultOnly     bool
	notDeprecated   bool
}

// newBundleFilter returns the filter of a request.
func newBundleFilter(r *registryv1.ListBundlesRequest) (*bundleFilter, error) {
	provides, providesErr := wantedAPI(r.GetProvides())
	versions, versionsErr := versionRange(r.GetVersionRange())
	err := cmp.Or(checkNames("channels", r.GetChannels()), checkNames("names", r.GetNames()), providesErr, versionsErr)
	if err != nil {
		return nil, err
	}
	return &bundleFilter{
		channels: r.GetChannels(), names: r.GetNames(), provides: provides, versions: versions,
		headsOnly: r.GetChannelHeadsOnly(), defaultOnly: r.GetDefaultChannelsOnly(), notDeprecated: r.GetExcludeDeprecated(),
	}, nil
}

// wantedPackages returns the packages of a request in byte order, each once; none stands for all.
func wantedPackages(names []string) ([]string, error) {
	if err := checkNames("packages", names); err != nil {
		return nil, err
	}
	return slices.Compact(slices.Sorted(slices.Values(names))), nil
}

// wantedAPI returns the API of a request, or nil for none.
func wantedAPI(wanted *registryv1.GroupVersionKind) (*bundles.GVK, error) {
	if wanted == nil {
		return nil, nil //nolint:nilnil // no API is wanted, which is no failure
	}
	out := gvkOf(wanted)
	if out.Version == "" || out.Kind == "" {
		return nil, invalid("provides", "must have a version and a kind, found version %q and kind %q: give both, or leave provides out",
			clip(out.Version, maxQuoted), clip(out.Kind, maxQuoted))
	}
	err := cmp.Or(
		checkName("provides.group", out.Group), checkName("provides.version", out.Version), checkName("provides.kind", out.Kind),
	)
	return &out, err
}

// maxQuoted is the part of a value that a message repeats, in bytes.
const maxQuoted = 100

// versionRange parses a version range. It returns nil for an empty text.
func versionRange(text string) (semver.Range, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no range is wanted, which is no failure
	}
	if len(text) > maxRange {
		return nil, invalid("version_range", "must have at most %d bytes, found %d: ask several times", maxRange, len(text))
	}
	parsed, err := bundles.ParseRange(text)
	if err != nil {
		return nil, invalid("version_range", "cannot be read, found %q (%v): write it like \">=1.2.0 <2.0.0\"", clip(text, maxQuoted), errors.Unwrap(err))
	}
	return parsed, nil
}

// matches reports whether a bundle at a position belongs to the listing.
func (f *bundleFilter) matches(b *listedBundle, at position) (bool, error) {
	switch {
	case f.headsOnly && !at.head,
		f.defaultOnly && !at.inDefault,
		f.notDeprecated && (b.deprecated || at.deprecated),
		len(f.channels) > 0 && !slices.Contains(f.channels, b.channel),
		len(f.names) > 0 && !slices.Contains(f.names, b.name),
		f.versions != nil && !inRange(f.versions, b.version):
		return false, nil
	case f.provides != nil:
		return b.provides(*f.provides)
	}
	return true, nil
}

// inRange reports whether a text is a version in a range.
func inRange(versions semver.Range, text string) bool {
	version, err := semver.Parse(text)
	return err == nil && versions(version)
}

// outline holds the fields of a package that determine the positions of its bundles.
type outline struct {
	name, defaultChannel string
	deprecated           bool
	channels             map[string]channelOutline
}

type channelOutline struct {
	head       string
	deprecated bool
}

// readOutline reads an encoded api.Package.
func readOutline(encoded []byte) (*outline, error) {
	var p api.Package
	if err := proto.Unmarshal(encoded, &p); err != nil {
		return nil, fmt.Errorf("reading package: %w", err)
	}
	out := &outline{
		name: p.GetName(), defaultChannel: p.GetDefaultChannelName(), deprecated: p.GetDeprecation() != nil,
		channels: make(map[string]channelOutline, len(p.GetChannels())),
	}
	for _, ch := range p.GetChannels() {
		out.channels[ch.GetName()] = channelOutline{head: ch.GetCsvName(), deprecated: ch.GetDeprecation() != nil}
	}
	return out, nil
}

// positionOf returns the position of a bundle in the package.
func (o *outline) positionOf(b *listedBundle) position {
	ch := o.channels[b.channel]
	return position{
		head: ch.head == b.name, inDefault: o.defaultChannel == b.channel, deprecated: o.deprecated || ch.deprecated,
	}
}
