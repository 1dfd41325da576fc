package edit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"

	"github.com/chandlery/chandlery/bundles"
)

// lantern is a catalog of one package in one file.
const lantern = `---
# The lantern.
schema: olm.package
name: lantern
defaultChannel: stable
---
schema: olm.channel
package: lantern
name: stable # for everybody
entries:
- name: lantern.v1.0.0
---
schema: olm.bundle
name: lantern.v1.0.0
package: lantern
image: example.com/lantern:1.0.0
properties:
- type: olm.package
  value: {packageName: lantern, version: 1.0.0}
`

func bundle(version, csv string) declcfg.Bundle {
	return declcfg.Bundle{
		Schema: "olm.bundle", Package: "lantern", Name: "lantern.v" + version, Image: "example.com/lantern:" + version, CsvJSON: csv,
		Properties: []property.Property{property.MustBuildPackage("lantern", version)},
	}
}

func files(t *testing.T, texts map[string]string) *Files {
	t.Helper()
	in := map[string][]byte{}
	for name, text := range texts {
		in[name] = []byte(text)
	}
	f, err := NewFiles("lantern", in)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func texts(f *Files) map[string]string {
	out := map[string]string{}
	for name, text := range f.Changed() {
		out[name] = string(text)
	}
	return out
}

const addedBundle = `---
image: example.com/lantern:1.1.0
name: lantern.v1.1.0
package: lantern
properties:
- type: olm.package
  value:
    packageName: lantern
    version: 1.1.0
schema: olm.bundle
`

func TestAdd(t *testing.T) {
	t.Parallel()
	withEntry := func(entry string) string {
		return strings.Replace(lantern, "- name: lantern.v1.0.0\n", "- name: lantern.v1.0.0\n"+entry, 1)
	}
	head, bundleText, _ := strings.Cut(lantern, "---\nschema: olm.bundle")
	split := map[string]string{"package.yaml": head, "bundles/lantern.v1.0.0.yaml": "---\nschema: olm.bundle" + bundleText}
	for name, tt := range map[string]struct {
		reason   string
		texts    map[string]string
		addition Addition
		want     map[string]string
	}{
		"ReplacesHead": {
			reason:   "without edges a bundle replaces the head; comments stay",
			texts:    map[string]string{"c.yaml": lantern},
			addition: Addition{Bundles: []declcfg.Bundle{bundle("1.1.0", "")}, Channels: []string{"stable"}},
			want:     map[string]string{"c.yaml": withEntry("- name: lantern.v1.1.0\n  replaces: lantern.v1.0.0\n") + addedBundle},
		},
		"OwnEdges": {
			reason: "the bundle's own edges count",
			texts:  map[string]string{"c.yaml": lantern},
			addition: Addition{Channels: []string{"stable"}, Bundles: []declcfg.Bundle{bundle("1.1.0",
				`{"metadata":{"annotations":{"olm.skipRange":"<1.1.0"}},"spec":{"skips":["lantern.v1.0.0"],"version":"1.1.0"}}`)}},
			want: map[string]string{"c.yaml": withEntry("- name: lantern.v1.1.0\n  skipRange: <1.1.0\n  skips:\n  - lantern.v1.0.0\n") + addedBundle},
		},
		"FileForEach": {
			reason:   "where bundles have files of their own a new one gets one, too",
			texts:    split,
			addition: Addition{Bundles: []declcfg.Bundle{bundle("1.1.0", "")}, Channels: []string{"stable"}},
			want: map[string]string{
				"package.yaml":                strings.Replace(split["package.yaml"], "- name: lantern.v1.0.0\n", "- name: lantern.v1.0.0\n- name: lantern.v1.1.0\n  replaces: lantern.v1.0.0\n", 1),
				"bundles/lantern.v1.1.0.yaml": addedBundle,
			},
		},
		"NewChannel": {
			reason:   "a channel is created when that is asked for",
			texts:    map[string]string{"c.yaml": lantern},
			addition: Addition{Bundles: []declcfg.Bundle{bundle("1.0.0", "")}, Channels: []string{"fast"}, CreateChannels: true},
			want:     map[string]string{"c.yaml": lantern + "---\nentries:\n- name: lantern.v1.0.0\nname: fast\npackage: lantern\nschema: olm.channel\n"},
		},
		"Template": {
			reason: "a basic template names the image",
			texts: map[string]string{"t.yaml": "schema: olm.template.basic\nentries:\n  - schema: olm.package # ours\n    name: lantern\n    defaultChannel: stable\n" +
				"  - schema: olm.channel\n    package: lantern\n    name: stable\n    entries:\n      - name: lantern.v1.0.0\n  - schema: olm.bundle\n    image: example.com/lantern:1.0.0\n"},
			addition: Addition{
				Bundles: []declcfg.Bundle{bundle("1.1.0", "")}, Channels: []string{"stable"},
				References: map[string]string{"lantern.v1.1.0": "example.com/lantern:1.1.0"},
			},
			want: map[string]string{"t.yaml": "schema: olm.template.basic\nentries:\n  - schema: olm.package # ours\n    name: lantern\n    defaultChannel: stable\n" +
				"  - schema: olm.channel\n    package: lantern\n    name: stable\n    entries:\n      - name: lantern.v1.0.0\n      - name: lantern.v1.1.0\n        replaces: lantern.v1.0.0\n" +
				"  - schema: olm.bundle\n    image: example.com/lantern:1.0.0\n  - image: example.com/lantern:1.1.0\n    schema: olm.bundle\n"},
		},
		"Semver": {
			reason:   "a semver template lists images",
			texts:    map[string]string{"t.yaml": "schema: olm.semver\nstable:\n  bundles:\n    - image: a # first\n"},
			addition: Addition{Bundles: []declcfg.Bundle{bundle("1.1.0", "")}, Channels: []string{"stable"}, References: map[string]string{"lantern.v1.1.0": "b"}},
			want:     map[string]string{"t.yaml": "schema: olm.semver\nstable:\n  bundles:\n    - image: a # first\n    - image: b\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := files(t, tt.texts)
			if err := f.Add(&tt.addition); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, texts(f)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tt.reason, diff)
			}
			if _, schema := f.Template(); schema != "" {
				return
			}
			if err := f.Validate(t.Context()); err != nil {
				t.Errorf("the changed catalog is invalid: %v", err)
			}
		})
	}
}

// TestAddSeveral adds two bundles in the order of their versions.
func TestAddSeveral(t *testing.T) {
	t.Parallel()
	f := files(t, map[string]string{"c.yaml": lantern})
	err := f.Add(&Addition{Bundles: []declcfg.Bundle{bundle("1.10.0", ""), bundle("1.9.0", "")}, Channels: []string{"stable"}})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := f.Package()
	if err != nil {
		t.Fatal(err)
	}
	want := []declcfg.ChannelEntry{
		{Name: "lantern.v1.0.0"}, {Name: "lantern.v1.9.0", Replaces: "lantern.v1.0.0"}, {Name: "lantern.v1.10.0", Replaces: "lantern.v1.9.0"},
	}
	if diff := cmp.Diff(want, cfg.Channels[0].Entries); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAddRefuses(t *testing.T) {
	t.Parallel()
	stranding := new(bundles.StrandedError)
	heads := new(bundles.MultipleHeadsError)
	for name, tt := range map[string]struct {
		reason   string
		addition Addition
		is       func(error) bool
		remedy   string
	}{
		"TwoHeads": {
			"nothing leads from the head on",
			Addition{Channels: []string{"stable"}, Bundles: []declcfg.Bundle{bundle("1.1.0", "")}, Edges: Edges{SkipRange: "<1.1.0"}},
			func(err error) bool { return errors.As(err, &heads) }, "--replaces",
		},
		"NoChannel": {
			"a mistyped channel is not created",
			Addition{Channels: []string{"stabel"}, Bundles: []declcfg.Bundle{bundle("1.1.0", "")}},
			func(err error) bool { return errors.Is(err, errNoChannel) }, "--create-channels",
		},
		"Twice": {
			"the entry is there",
			Addition{Channels: []string{"stable"}, Bundles: []declcfg.Bundle{bundle("1.0.0", "")}},
			func(err error) bool { return errors.Is(err, errInChannel) }, "another channel",
		},
		"Lower": {
			"an upgrade does not lead to a lower version",
			Addition{Channels: []string{"stable"}, Bundles: []declcfg.Bundle{bundle("0.9.0", "")}},
			func(err error) bool { return err != nil }, "lower version",
		},
		"BadRange": {
			"the range cannot be parsed",
			Addition{Channels: []string{"stable"}, Bundles: []declcfg.Bundle{bundle("1.1.0", "")}, Edges: Edges{Replaces: "lantern.v1.0.0", SkipRange: "x"}},
			func(err error) bool { return err != nil }, ">=1.0.0",
		},
		"OneCycle": {
			"the new bundle is replaced by nothing and replaces itself",
			Addition{Channels: []string{"stable"}, Bundles: []declcfg.Bundle{bundle("1.1.0", "")}, Edges: Edges{Replaces: "lantern.v1.1.0"}},
			func(err error) bool { return err != nil && !errors.As(err, &stranding) || errors.As(err, &stranding) }, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := files(t, map[string]string{"c.yaml": lantern})
			cfg, err := f.Package()
			if err != nil {
				t.Fatal(err)
			}
			inner := adder{f, &tt.addition}.addEntry(&tt.addition.Bundles[0], cfg, tt.addition.Channels[0])
			if !tt.is(inner) {
				t.Errorf("%s: got %v", tt.reason, inner)
			}
			var problems bundles.Problems
			if err := f.Add(&tt.addition); !errors.As(err, &problems) || problems[0].File == "" || !strings.Contains(problems[0].Remedy, tt.remedy) {
				t.Errorf("%s: got problems %v", tt.reason, err)
			}
			if len(f.Changed()) > 0 {
				t.Error("files have changed")
			}
		})
	}
}

// TestStranded changes a channel in which c replaces b, and b replaces a.
func TestStranded(t *testing.T) {
	t.Parallel()
	entries := []declcfg.ChannelEntry{{Name: "a"}, {Name: "b", Replaces: "a"}, {Name: "c", Replaces: "b"}}
	for name, tt := range map[string]struct {
		reason string
		added  declcfg.ChannelEntry
		want   error
	}{
		"Replaces":   {"everything leads through c", declcfg.ChannelEntry{Name: "d", Replaces: "c"}, nil},
		"SkipsBoth":  {"b and c are skipped, and a is replaced", declcfg.ChannelEntry{Name: "d", Replaces: "a", Skips: []string{"b", "c"}}, nil},
		"SkipsHead":  {"b is neither replaced nor skipped", declcfg.ChannelEntry{Name: "d", Replaces: "a", Skips: []string{"c"}}, &bundles.StrandedError{Entries: []string{"b"}}},
		"SecondHead": {"c is a head, too", declcfg.ChannelEntry{Name: "d", Replaces: "b"}, &bundles.MultipleHeadsError{Heads: []string{"c", "d"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := declcfg.Channel{Name: "stable", Entries: entries}
			after := declcfg.Channel{Name: "stable", Entries: append(append([]declcfg.ChannelEntry{}, entries...), tt.added)}
			err := errors.Unwrap(checkUpgrade(&before, &after, nil))
			if diff := cmp.Diff(tt.want, err); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tt.reason, diff)
			}
		})
	}
}

func TestDeprecate(t *testing.T) {
	t.Parallel()
	list := lantern + "---\nschema: olm.deprecations\npackage: lantern\nentries:\n- reference:\n    schema: olm.package\n  message: old # since May\n"
	for name, tt := range map[string]struct {
		reason, text string
		reference    declcfg.PackageScopedReference
		want         string
	}{
		"First": {
			"the object is created", lantern,
			declcfg.PackageScopedReference{Schema: "olm.channel", Name: "stable"},
			lantern + "---\nentries:\n- message: use other\n  reference:\n    name: stable\n    schema: olm.channel\npackage: lantern\nschema: olm.deprecations\n",
		},
		"Another": {
			"an entry is added", list,
			declcfg.PackageScopedReference{Schema: "olm.bundle", Name: "lantern.v1.0.0"},
			list + "- message: use other\n  reference:\n    name: lantern.v1.0.0\n    schema: olm.bundle\n",
		},
		"Again": {
			"the message is replaced; the comment stays", list,
			declcfg.PackageScopedReference{Schema: "olm.package"},
			strings.Replace(strings.Replace(list, "message: old # since May", "message: use other # since May", 1),
				"entries:\n- reference:\n    schema: olm.package\n  message", "entries:\n  - reference:\n      schema: olm.package\n    message", 1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := files(t, map[string]string{"c.yaml": tt.text})
			if err := f.Deprecate(tt.reference, "use other"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]string{"c.yaml": tt.want}, texts(f)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tt.reason, diff)
			}
			if err := f.Validate(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	f := files(t, map[string]string{"c.yaml": lantern})
	if err := f.Deprecate(declcfg.PackageScopedReference{Schema: "olm.channel", Name: "stabel"}, "x"); err == nil {
		t.Error("a channel that is not there was deprecated")
	}
}

// TestValidate checks that Validate reports the positions of problems.
func TestValidate(t *testing.T) {
	t.Parallel()
	f := files(t, map[string]string{"c.yaml": strings.Replace(lantern, "defaultChannel: stable", "defaultChannel: fast", 1)})
	var problems bundles.Problems
	if err := f.Validate(t.Context()); !errors.As(err, &problems) || !strings.HasPrefix(problems[0].File, "c.yaml:") {
		t.Errorf("got %v", err)
	}
}

// FuzzAdd checks that a changed catalog is still readable.
func FuzzAdd(f *testing.F) {
	f.Add(lantern)
	encoded, err := json.Marshal(map[string]any{"schema": "olm.package", "name": "lantern", "defaultChannel": "stable"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(fmt.Sprintf("%s\n", encoded))
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		files, err := NewFiles("lantern", map[string][]byte{"c.yaml": []byte(text)})
		if err != nil {
			return
		}
		b := bundle("9.9.9", "")
		if files.Add(&Addition{Bundles: []declcfg.Bundle{b}, Channels: []string{"stable"}}) != nil {
			return
		}
		cfg, err := files.Package()
		if err != nil || len(cfg.Bundles) == 0 {
			t.Errorf("%q became %q: %v", text, files.Changed()["c.yaml"], err)
		}
	})
}
