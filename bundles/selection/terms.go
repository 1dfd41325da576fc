package selection

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/bundles"
)

// Terms is a selection as command lines have it, in values of flags.
type Terms struct {
	// Packages are PACKAGE or PACKAGE@RANGE.
	Packages []string
	// Channels are PACKAGE/CHANNEL or PACKAGE/CHANNEL@RANGE. A package that is named
	// here only is wanted with these channels.
	Channels []string
	// From are PACKAGE@BUNDLE or PACKAGE@VERSION, of installed bundles.
	From []string
	// Heads and Dependencies are those of [Selection].
	Heads, Dependencies bool
}

var (
	errPackageTerm = errors.New("is not of the form PACKAGE or PACKAGE@RANGE")
	errChannelTerm = errors.New("is not of the form PACKAGE/CHANNEL or PACKAGE/CHANNEL@RANGE")
	errFromTerm    = errors.New("is not of the form PACKAGE@BUNDLE or PACKAGE@VERSION")
	errOnlyAdds    = errors.New("dependencies add to what is selected: name packages or channels, or keep heads only")
)

// Selection returns what the terms mean. The zero value of Terms is the zero value
// of Selection.
func (t *Terms) Selection() (*Selection, error) {
	out := &Selection{Heads: t.Heads, Dependencies: t.Dependencies}
	for _, terms := range []struct {
		texts []string
		add   func(*Selection, string) error
	}{{t.Packages, (*Selection).addPackage}, {t.Channels, (*Selection).addChannel}, {t.From, (*Selection).addFrom}} {
		for _, text := range terms.texts {
			if err := terms.add(out, text); err != nil {
				return nil, fmt.Errorf("%s %w", bundles.Quote(text), err)
			}
		}
	}
	if t.Dependencies && out.IsZero() {
		return nil, errOnlyAdds
	}
	out = out.sorted()
	if err := out.Validate(); err != nil {
		return nil, err
	}
	return out, nil
}

func (s *Selection) addPackage(text string) error {
	name, versions, ranged := strings.Cut(text, "@")
	if name == "" || ranged && versions == "" {
		return errPackageTerm
	}
	s.Packages = append(s.Packages, Package{Name: name, Versions: versions})
	return nil
}

func (s *Selection) addChannel(text string) error {
	path, versions, ranged := strings.Cut(text, "@")
	name, channel, _ := strings.Cut(path, "/")
	if name == "" || channel == "" || ranged && versions == "" {
		return errChannelTerm
	}
	p := s.named(name)
	p.Channels = append(p.Channels, Channel{Name: channel, Versions: versions})
	return nil
}

func (s *Selection) addFrom(text string) error {
	name, installed, _ := strings.Cut(text, "@")
	if name == "" || installed == "" {
		return errFromTerm
	}
	p := s.named(name)
	p.From = append(p.From, installed)
	return nil
}

// named returns the package of that name, which it adds if there is none.
func (s *Selection) named(name string) *Package {
	i := slices.IndexFunc(s.Packages, func(p Package) bool { return p.Name == name })
	if i < 0 {
		s.Packages = append(s.Packages, Package{Name: name})
		i = len(s.Packages) - 1
	}
	return &s.Packages[i]
}
