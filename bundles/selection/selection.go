package selection

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
)

// Selection selects a part of a catalog. The zero value selects all of it.
type Selection struct {
	// Packages are the selected packages; none means all.
	Packages []Package `json:"packages,omitempty"`
	// Heads keeps only the head of each channel, or the highest version if a range excludes the head.
	Heads bool `json:"heads,omitempty"`
	// OnlyDefaultChannels keeps only the default channel of packages that list no channels.
	OnlyDefaultChannels bool `json:"onlyDefaultChannels,omitempty"`
	// Dependencies adds the bundles that kept bundles require, and those that these require.
	Dependencies bool `json:"dependencies,omitempty"`
	// Installed are the names of installed bundles of a cluster. They have the meaning of
	// [Package.From] for each package that has them. If Packages is empty, only such packages are
	// selected.
	Installed []string `json:"-"`
}

// Package selects a part of a package. The name alone selects all of it.
type Package struct {
	// Name is the name of the package.
	Name string `json:"name"`
	// Channels are the selected channels; none means all.
	Channels []Channel `json:"channels,omitempty"`
	// DefaultChannel is the new default channel; empty keeps the current one.
	DefaultChannel string `json:"defaultChannel,omitempty"`
	// Versions is a range in the grammar of github.com/blang/semver; empty means all. It must not
	// be combined with ranges of channels.
	Versions string `json:"versions,omitempty"`
	// Heads is [Selection.Heads] for this package.
	Heads bool `json:"heads,omitempty"`
	// From are installed bundles, by name or version. Of each channel, only the upgrade path from
	// these to the head is kept, including these.
	From []string `json:"from,omitempty"`
}

// Channel selects a part of a channel.
type Channel struct {
	// Name is the name of the channel.
	Name string `json:"name"`
	// Versions is [Package.Versions] for this channel.
	Versions string `json:"versions,omitempty"`
	// Heads is [Selection.Heads] for this channel.
	Heads bool `json:"heads,omitempty"`
}

// IsZero reports whether the selection selects the whole catalog.
func (s *Selection) IsZero() bool {
	return s == nil || len(s.Packages) == 0 && len(s.Installed) == 0 && !s.Heads && !s.OnlyDefaultChannels
}

// String returns the selection as JSON for [Parse]. Equal selections have equal texts. The text
// omits [Selection.Installed].
func (s *Selection) String() string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s.sorted()); err != nil {
		return err.Error() // strings and booleans can always be encoded
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// sorted returns the selection with its lists sorted by name.
func (s *Selection) sorted() *Selection {
	out := *s
	out.Packages = byName(s.Packages, func(p *Package) string { return p.Name })
	for i := range out.Packages {
		p := &out.Packages[i]
		p.Channels = byName(p.Channels, func(ch *Channel) string { return ch.Name })
		p.From = slices.Compact(slices.Sorted(slices.Values(p.From)))
	}
	return &out
}

// byName returns a copy of a list sorted by name. It sorts pointers, for which programs already have the code.
func byName[T any](list []T, name func(*T) string) []T {
	pointers := make([]*T, len(list))
	for i := range list {
		pointers[i] = &list[i]
	}
	slices.SortStableFunc(pointers, func(a, b *T) int { return cmp.Compare(name(a), name(b)) })
	var out []T
	for _, p := range pointers {
		out = append(out, *p)
	}
	return out
}

// Validate returns all problems of the selection that do not depend on a catalog, as [bundles.Problems], or nil.
func (s *Selection) Validate() error {
	var found bundles.Problems
	seen := make(map[string]bool, len(s.Packages))
	for i := range s.Packages {
		p := &s.Packages[i]
		if seen[p.Name] {
			found = append(found, bundles.Problem{
				Package: p.Name, Message: "the selection has the package twice", Remedy: "write all that is wanted of it in one place",
			})
		}
		seen[p.Name] = true
		found = append(found, p.validate(i)...)
	}
	return found.OrNil()
}

func (p *Package) validate(i int) bundles.Problems {
	var found bundles.Problems
	add := func(channel, message, remedy string) {
		found = append(found, bundles.Problem{Package: p.Name, Channel: channel, Message: message, Remedy: remedy})
	}
	if p.Name == "" {
		add("", fmt.Sprintf("packages[%d] of the selection has no name", i), "set it to the name of a package")
	}
	checkRange := func(channel, text string) {
		if err := checkRange(text); err != nil {
			add(channel, "versions of the selection: "+err.Error(), "write a range such as >=1.0.0 <1.2.0")
		}
	}
	checkRange("", p.Versions)
	if slices.Contains(p.From, "") {
		add("", "from of the selection has an empty element", "write the name or version of a bundle")
	}
	seen := make(map[string]bool, len(p.Channels))
	for _, ch := range p.Channels {
		switch {
		case ch.Name == "":
			add("", "a channel of the selection has no name", "set it to the name of a channel")
		case seen[ch.Name]:
			add(ch.Name, "the selection has the channel twice", "write all that is wanted of it in one place")
		}
		seen[ch.Name] = true
		checkRange(ch.Name, ch.Versions)
		if p.Versions != "" && ch.Versions != "" {
			add(ch.Name, "the selection has versions of the package and of its channel", "keep one of them")
		}
	}
	if p.DefaultChannel != "" && len(p.Channels) > 0 && !seen[p.DefaultChannel] {
		add(p.DefaultChannel, "the selection makes it the default channel and does not keep it", "add it to the channels of the package")
	}
	return found
}

// checkRange returns an error for an invalid range of versions.
func checkRange(text string) error {
	if text == "" {
		return nil
	}
	_, err := bundles.ParseRange(text)
	return err
}

// parseRange returns a range of versions; nil for an empty text.
func parseRange(text string) (semver.Range, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no range is no error
	}
	return bundles.ParseRange(text)
}

// pkg returns the selection for a package, and whether the package is selected.
func (s *Selection) pkg(name string) (Package, bool) {
	if len(s.Packages) == 0 {
		return Package{Name: name}, true
	}
	for i := range s.Packages {
		if s.Packages[i].Name == name {
			return s.Packages[i], true
		}
	}
	return Package{}, false
}
