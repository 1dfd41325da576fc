package selection

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/bundles"
)

// Terms is a selection in the values of command line flags.
type Terms struct {
	// Packages are PACKAGE or PACKAGE@RANGE.
	Packages []string
	// Channels are PACKAGE/CHANNEL or PACKAGE/CHANNEL@RANGE. A package that only these name is
	// selected with these channels.
	Channels []string
	// From are installed bundles, as PACKAGE@BUNDLE or PACKAGE@VERSION.
	From []string
	// Heads and Dependencies are the fields of [Selection].
	Heads, Dependencies bool
}

var (
	errPackageTerm = errors.New("is not of the form PACKAGE or PACKAGE@RANGE")
	errChannelTerm = errors.New("is not of the form PACKAGE/CHANNEL or PACKAGE/CHANNEL@RANGE")
	errFromTerm    = errors.New("is not of the form PACKAGE@BUNDLE or PACKAGE@VERSION")
	errOnlyAdds    = errors.New("dependencies add to what is selected: name packages or channels, or keep heads only")
)

// Selection returns the selection. The zero value of Terms is the zero value of Selection.
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

// named returns the package with a name. It adds the package if it is missing.
func (s *Selection) named(name string) *Package {
	i := slices.IndexFunc(s.Packages, func(p Package) bool { return p.Name == name })
	if i < 0 {
		s.Packages = append(s.Packages, Package{Name: name})
		i = len(s.Packages) - 1
	}
	return &s.Packages[i]
}
