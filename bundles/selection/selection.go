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

// Selection says which part of a catalog is wanted. The zero value wants all of it.
type Selection struct {
	// Packages are those that are wanted; none means all.
	Packages []Package `json:"packages,omitempty"`
	// Heads keeps of each channel its head alone, or the highest version where a
	// range excludes the head.
	Heads bool `json:"heads,omitempty"`
	// OnlyDefaultChannels keeps of packages that list no channels the default one.
	OnlyDefaultChannels bool `json:"onlyDefaultChannels,omitempty"`
	// Dependencies adds what kept bundles require of others, and what that requires
	// in turn.
	Dependencies bool `json:"dependencies,omitempty"`
	// Installed are names of bundles that a cluster has installed. They count as
	// [Package.From] of each package that has them, and where Packages is empty only
	// such packages are wanted.
	Installed []string `json:"-"`
}

// Package is what is wanted of a package. The name alone means all of it.
type Package struct {
	// Name of the package.
	Name string `json:"name"`
	// Channels are those that are wanted; none means all.
	Channels []Channel `json:"channels,omitempty"`
	// DefaultChannel is the new default channel; empty keeps the one that the package
	// has.
	DefaultChannel string `json:"defaultChannel,omitempty"`
	// Versions is a range in the grammar of github.com/blang/semver; empty means all.
	// It excludes ranges of channels.
	Versions string `json:"versions,omitempty"`
	// Heads does what [Selection.Heads] does, for this package.
	Heads bool `json:"heads,omitempty"`
	// From are installed bundles, by name or version. Of each channel the upgrade
	// path from these to the head is kept, and nothing else; they themselves are
	// part of it.
	From []string `json:"from,omitempty"`
}

// Channel is what is wanted of a channel.
type Channel struct {
	// Name of the channel.
	Name string `json:"name"`
	// Versions does what [Package.Versions] does, for this channel.
	Versions string `json:"versions,omitempty"`
	// Heads does what [Selection.Heads] does, for this channel.
	Heads bool `json:"heads,omitempty"`
}

// IsZero reports whether the selection wants the whole catalog.
func (s *Selection) IsZero() bool {
	return s == nil || len(s.Packages) == 0 && len(s.Installed) == 0 && !s.Heads && !s.OnlyDefaultChannels
}

// String returns the selection as the JSON that [Parse] reads. Equal selections
// have equal texts, except for what is [Selection.Installed], which it leaves out.
func (s *Selection) String() string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s.sorted()); err != nil {
		return err.Error() // strings and booleans can always be encoded
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// sorted returns the selection in the order of names.
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

// byName returns a copy of a list in the order of names. It sorts pointers, for which
// programs have the code already.
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

// Validate returns everything that is wrong with the selection whatever catalog it
// is applied to, as [bundles.Problems], or nil.
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

// checkRange reports what is wrong with a range of versions.
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

// pkg returns what is wanted of a package, and whether anything is.
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
