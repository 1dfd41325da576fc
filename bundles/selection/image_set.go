package selection

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
)

// The API version and kind of an ImageSetConfiguration. In older versions the same fields have other meanings.
const (
	imageSetVersion = "mirror.openshift.io/v2alpha1"
	imageSetKind    = "ImageSetConfiguration"
)

// imageSet is an ImageSetConfiguration of oc-mirror. Fields for other images than those of
// operators are ignored. It selects what oc-mirror 4.18 and later copies: without channels, the heads of all channels
// of a package. oc-mirror 4.16 and 4.17 only used default channels.
type imageSet struct {
	APIVersion  string          `json:"apiVersion"`
	Kind        string          `json:"kind"`
	ArchiveSize json.RawMessage `json:"archiveSize"`
	Mirror      struct {
		Operators        []imageSetOperator `json:"operators"`
		Platform         json.RawMessage    `json:"platform"`
		AdditionalImages json.RawMessage    `json:"additionalImages"`
		Helm             json.RawMessage    `json:"helm"`
		BlockedImages    json.RawMessage    `json:"blockedImages"`
		Samples          json.RawMessage    `json:"samples"`
	} `json:"mirror"`
}

// imageSetOperator selects a part of one catalog. The destination of the catalog's copy and the
// platforms have no meaning here. Dependencies are never followed.
type imageSetOperator struct {
	Catalog                     string            `json:"catalog"`
	Full                        bool              `json:"full"`
	Packages                    []imageSetPackage `json:"packages"`
	SkipDependencies            bool              `json:"skipDependencies"`
	TargetCatalog               string            `json:"targetCatalog"`
	TargetTag                   string            `json:"targetTag"`
	TargetCatalogSourceTemplate string            `json:"targetCatalogSourceTemplate"`
	Platforms                   json.RawMessage   `json:"platforms"`
}

type imageSetPackage struct {
	imageSetVersions

	Name           string            `json:"name"`
	Channels       []imageSetChannel `json:"channels"`
	DefaultChannel string            `json:"defaultChannel"`
}

type imageSetChannel struct {
	imageSetVersions

	Name string `json:"name"`
}

// imageSetVersions is a range that includes both ends.
type imageSetVersions struct {
	MinVersion string `json:"minVersion"`
	MaxVersion string `json:"maxVersion"`
}

var (
	errNoOperators = errors.New("the ImageSetConfiguration has nothing under mirror.operators")
	errNoCatalog   = errors.New("no entry under mirror.operators of the ImageSetConfiguration is for this catalog")
	errTwoEntries  = errors.New("several entries under mirror.operators of the ImageSetConfiguration are for this catalog")
)

func parseImageSet(document []byte, catalog string) (*Selection, error) {
	var in imageSet
	if err := decodeStrictly(document, &in); err != nil {
		return nil, err
	}
	operator, err := in.operator(catalog)
	if err != nil {
		return nil, err
	}
	out := &Selection{Heads: !operator.Full && len(operator.Packages) == 0}
	var found bundles.Problems
	for i := range operator.Packages {
		p, problems := operator.Packages[i].selection(operator.Full)
		out.Packages = append(out.Packages, p)
		found = append(found, problems...)
	}
	return out, found.OrNil()
}

// operator returns the entry for a catalog.
func (s *imageSet) operator(catalog string) (*imageSetOperator, error) {
	operators := s.Mirror.Operators
	switch len(operators) {
	case 0:
		return nil, errNoOperators
	case 1:
		return &operators[0], nil
	}
	var match *imageSetOperator
	for i := range operators {
		if strings.TrimPrefix(operators[i].Catalog, "oci://") != catalog {
			continue
		}
		if match != nil {
			return nil, fmt.Errorf("%w: %s", errTwoEntries, bundles.Quote(catalog))
		}
		match = &operators[i]
	}
	if match == nil {
		return nil, fmt.Errorf("%w: %s", errNoCatalog, bundles.Quote(catalog))
	}
	return match, nil
}

func (p *imageSetPackage) selection(full bool) (Package, bundles.Problems) {
	var found bundles.Problems
	add := func(channel, message, remedy string) {
		found = append(found, bundles.Problem{Package: p.Name, Channel: channel, Message: message, Remedy: remedy})
	}
	check := func(channel string, v imageSetVersions) {
		if full && v != (imageSetVersions{}) {
			add(channel, "minVersion and maxVersion make no sense with full", "remove full, or the versions")
		}
		for _, problem := range v.check() {
			add(channel, problem, "write it as MAJOR.MINOR.PATCH, without a v")
		}
	}
	check("", p.imageSetVersions)
	if len(p.Channels) > 0 && p.imageSetVersions != (imageSetVersions{}) {
		add("", "the package has channels beside minVersion or maxVersion", "set versions at the channels")
	}
	out := Package{
		Name: p.Name, DefaultChannel: p.DefaultChannel, Versions: p.text(),
		Heads: !full && len(p.Channels) == 0 && p.imageSetVersions == (imageSetVersions{}),
	}
	for _, ch := range p.Channels {
		check(ch.Name, ch.imageSetVersions)
		out.Channels = append(out.Channels, Channel{
			Name: ch.Name, Versions: ch.text(), Heads: !full && ch.imageSetVersions == (imageSetVersions{}),
		})
	}
	return out, found
}

// check returns the problems of the versions.
func (v imageSetVersions) check() []string {
	var found []string
	for _, field := range []struct{ name, text string }{{"minVersion", v.MinVersion}, {"maxVersion", v.MaxVersion}} {
		if field.text == "" {
			continue
		}
		if _, err := semver.Parse(field.text); err != nil {
			found = append(found, fmt.Sprintf("%s %s is not a semantic version: %v", field.name, bundles.Quote(field.text), err))
		}
	}
	return found
}

// text returns the versions in the grammar of version ranges.
func (v imageSetVersions) text() string {
	var parts []string
	if v.MinVersion != "" {
		parts = append(parts, ">="+v.MinVersion)
	}
	if v.MaxVersion != "" {
		parts = append(parts, "<="+v.MaxVersion)
	}
	return strings.Join(parts, " ")
}
