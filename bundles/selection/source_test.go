package selection

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/bundles/index"
)

// Indexes can be built from selections.
var _ index.Source = (*Selected)(nil)

// open parses a catalog in a short form, with a line for each object:
//
//	package NAME DEFAULT
//	channel PACKAGE NAME BUNDLE[>REPLACED][!SKIPPED][~RANGE]…
//	bundle PACKAGE NAME VERSION [TYPE=VALUE…]
//	deprecate PACKAGE SCHEMA NAME
//
// where VALUE is JSON without spaces and RANGE has a comma for each space.
func open(t *testing.T, text string) *fbc.Reader {
	t.Helper()
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if err := encoder.Encode(object(t, fields)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := fbc.Open(t.Context(), fstest.MapFS{"catalog.json": {Data: []byte(out.String())}}, fbc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func object(t *testing.T, fields []string) map[string]any {
	t.Helper()
	switch fields[0] {
	case "package":
		return map[string]any{"schema": bundles.SchemaPackage, "name": fields[1], "defaultChannel": fields[2]}
	case "channel":
		var entries []map[string]any
		for _, field := range fields[3:] {
			entries = append(entries, entry(field))
		}
		return map[string]any{"schema": bundles.SchemaChannel, "package": fields[1], "name": fields[2], "entries": entries}
	case "bundle":
		properties := []map[string]any{{"type": bundles.TypePackage, "value": map[string]any{"packageName": fields[1], "version": fields[3]}}}
		for _, field := range fields[4:] {
			kind, value, _ := strings.Cut(field, "=")
			properties = append(properties, map[string]any{"type": kind, "value": json.RawMessage(value)})
		}
		return map[string]any{
			"schema": bundles.SchemaBundle, "package": fields[1], "name": fields[2], "image": "example.com/" + fields[2] + ":1", "properties": properties,
		}
	case "deprecate":
		reference := map[string]any{"schema": fields[2]}
		if len(fields) > 3 {
			reference["name"] = fields[3]
		}
		return map[string]any{
			"schema": bundles.SchemaDeprecations, "package": fields[1], "entries": []any{map[string]any{"reference": reference, "message": "old"}},
		}
	default:
		return map[string]any{"schema": fields[0], "package": fields[1]}
	}
}

func entry(field string) map[string]any {
	out := map[string]any{}
	rest, skipRange, ranged := strings.Cut(field, "~")
	if ranged {
		out["skipRange"] = strings.ReplaceAll(skipRange, ",", " ")
	}
	parts := strings.Split(rest, "!")
	if len(parts) > 1 {
		out["skips"] = parts[1:]
	}
	name, replaced, replaces := strings.Cut(parts[0], ">")
	out["name"] = name
	if replaces {
		out["replaces"] = replaced
	}
	return out
}

// lamps has a package with two channels.
const lamps = `
package lamp stable
channel lamp old lamp.v1 lamp.v2>lamp.v1
channel lamp stable lamp.v1>lamp.v0 lamp.v2>lamp.v1 lamp.v3>lamp.v2 lamp.v4>lamp.v3
bundle lamp lamp.v1 1.0.0
bundle lamp lamp.v2 2.0.0
bundle lamp lamp.v3 3.0.0
bundle lamp lamp.v4 4.0.0
deprecate lamp olm.bundle lamp.v3
notes lamp
package oil stable
channel oil stable oil.v1
bundle oil oil.v1 1.0.0
notes oil
`

// show returns the selected part of a catalog, with a line for each channel, or the problems. It
// builds an index, which checks everything.
func show(t *testing.T, r Source, s *Selection) string {
	t.Helper()
	selected, err := Open(t.Context(), r, s)
	if err != nil {
		return err.Error()
	}
	x, err := index.CreateInMemory(t.Context(), selected, index.Options{})
	if err != nil {
		problems := bundles.Problems(nil)
		if !errors.As(err, &problems) {
			t.Fatal(err)
		}
		return problems.Error()
	}
	var out strings.Builder
	for summary := range x.Summaries() {
		graph, err := x.Graph(summary.Package)
		if err != nil {
			t.Fatal(err)
		}
		for _, ch := range graph.Channels {
			mark := ""
			if ch.Name == graph.DefaultChannel {
				mark = "*"
			}
			fmt.Fprintf(&out, "%s/%s%s:", graph.Package, ch.Name, mark)
			for _, e := range ch.Entries {
				fmt.Fprintf(&out, " %s", strings.TrimPrefix(e.Name, graph.Package+"."))
			}
			out.WriteString("\n")
		}
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func TestSelect(t *testing.T) {
	one := func(p Package) *Selection { return &Selection{Packages: []Package{p}} }
	for name, test := range map[string]struct {
		reason    string
		selection *Selection
		want      string
	}{
		"All": {"the zero value", &Selection{}, "lamp/old: v1 v2\nlamp/stable*: v1 v2 v3 v4\noil/stable*: v1"},
		"Heads": {
			"of each channel of each package", &Selection{Heads: true}, "lamp/old: v2\nlamp/stable*: v4\noil/stable*: v1",
		},
		"DefaultHeads": {
			"of default channels", &Selection{Heads: true, OnlyDefaultChannels: true}, "lamp/stable*: v4\noil/stable*: v1",
		},
		"Package": {"all of it", one(Package{Name: "lamp"}), "lamp/old: v1 v2\nlamp/stable*: v1 v2 v3 v4"},
		"Range": {
			"a channel without such a version is left out", one(Package{Name: "lamp", Versions: ">=3.0.0"}), "lamp/stable*: v3 v4",
		},
		"Upper": {"the head may be left out", one(Package{Name: "lamp", Versions: "<3.0.0"}), "lamp/old: v1 v2\nlamp/stable*: v1 v2"},
		"HeadOfRange": {
			"the highest version in it", one(Package{Name: "lamp", Versions: "<4.0.0", Heads: true}), "lamp/old: v2\nlamp/stable*: v3",
		},
		"Channel": {
			"the only one becomes the default", one(Package{Name: "lamp", Channels: []Channel{{Name: "old"}}}), "lamp/old*: v1 v2",
		},
		"ChannelHead": {
			"of one channel", one(Package{Name: "lamp", Channels: []Channel{{Name: "old", Heads: true}, {Name: "stable", Versions: "3.x || 4.x"}}}),
			"lamp/old: v2\nlamp/stable*: v3 v4",
		},
		"NewDefault": {"as chosen", one(Package{Name: "lamp", DefaultChannel: "old"}), "lamp/old*: v1 v2\nlamp/stable: v1 v2 v3 v4"},
		"From": {
			"the path of each channel that has one", one(Package{Name: "lamp", From: []string{"2.0.0"}}), "lamp/old: v2\nlamp/stable*: v2 v3 v4",
		},
		"FromBefore": {
			"what the catalog lacks", one(Package{Name: "lamp", From: []string{"lamp.v0"}}), "lamp/stable*: v1 v2 v3 v4",
		},
		"FromHead": {"there is no way to go", one(Package{Name: "lamp", From: []string{"lamp.v4"}}), "lamp/stable*: v4"},
		"Installed": {
			"packages of which nothing is installed are left out", &Selection{Installed: []string{"lamp.v3", "other.v1"}}, "lamp/stable*: v3 v4",
		},
		"InstalledNamed": {
			"unless they are named", &Selection{Packages: []Package{{Name: "lamp"}, {Name: "oil"}}, Installed: []string{"lamp.v3"}},
			"lamp/stable*: v3 v4\noil/stable*: v1",
		},
		"NoPackage": {
			"nothing is served that is not what was meant", &Selection{Packages: []Package{{Name: "lamb"}, {Name: "oil"}}},
			`package "lamb": the selection: the catalog has no such package; correct the name, or remove the package from the selection`,
		},
		"NoChannel": {
			"the channels are named", one(Package{Name: "lamp", DefaultChannel: "x", Channels: []Channel{{Name: "x"}, {Name: "old"}}}),
			`package "lamp", channel "x": the selection: the package has no such channel; name one of its channels: old, stable` + "\n" +
				`package "lamp", channel "x": the selection: the package has no such channel to be the default; name one of its channels: old, stable`,
		},
		"NoVersion": {
			"what there is", one(Package{Name: "lamp", Versions: ">=5.0.0"}),
			`package "lamp": the selection: no version of the package is in the range >=5.0.0; it has versions from 1.0.0 to 4.0.0`,
		},
		"NoVersionOfChannel": {
			"what there is", one(Package{Name: "lamp", Channels: []Channel{{Name: "old", Versions: ">=3.0.0"}, {Name: "stable"}}}),
			`package "lamp", channel "old": the selection: no version of the channel is in the range >=3.0.0; it has versions from 1.0.0 to 2.0.0`,
		},
		"NoPath": {
			"it is of another package", one(Package{Name: "lamp", From: []string{"oil.v1"}}),
			`package "lamp": the selection: no upgrade path of the package begins at oil.v1; name a bundle that one of its channels leads on from`,
		},
		"NoDefault": {
			"two are kept and neither is the default", one(Package{Name: "lamp", DefaultChannel: "", Channels: []Channel{{Name: "old"}}}), "lamp/old*: v1 v2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := test.selection.Validate(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, show(t, open(t, lamps), test.selection)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", test.reason, diff)
			}
		})
	}
}

// three has three channels. Only their highest entries join some versions.
const three = `
package p c
channel p a p.v1
channel p b p.v1 p.v2>p.v1
channel p c p.v1 p.v2 p.v3!p.v1!p.v2
bundle p p.v1 1.0.0
bundle p p.v2 2.0.0
bundle p p.v3 3.0.0
`

func TestSelectDefault(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		pkg    Package
		want   string
	}{
		"Chosen": {
			"a choice of channels needs a choice of the default",
			Package{Name: "p", Channels: []Channel{{Name: "a"}, {Name: "b"}}},
			`package "p": the selection: the default channel "c" is not kept; keep it too, or set defaultChannel of the package to one of the channels that are kept`,
		},
		"Joined": {
			"nothing says which of the two replaces the other",
			Package{Name: "p", Versions: "<3.0.0"},
			`package "p", channel "c": the selection: multiple channel heads found in graph: p.v1, p.v2; ` +
				`nothing that is kept leads from one of them to the other: keep heads only, one version, or a range that includes what replaces or skips them`,
		},
		"Highest": {
			"the channel of the highest version where ranges leave out the default",
			Package{Name: "p", From: []string{"p.v2"}, Versions: "<3.0.0", Channels: []Channel{{Name: "b"}}},
			"p/b*: v2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, show(t, open(t, three), &Selection{Packages: []Package{test.pkg}})); diff != "" {
				t.Errorf("%s: -want +got:\n%s", test.reason, diff)
			}
		})
	}
}

// TestSelectedObjects selects objects that are not part of the graph.
func TestSelectedObjects(t *testing.T) {
	r := open(t, lamps)
	for name, test := range map[string]struct {
		reason   string
		versions string
		want     int
	}{
		"Kept":    {"of a bundle that is kept", ">=3.0.0", 1},
		"Dropped": {"of one that is not", "<3.0.0", 0},
	} {
		t.Run(name, func(t *testing.T) {
			selected, err := Open(t.Context(), r, &Selection{Packages: []Package{{Name: "lamp", Versions: test.versions}}})
			if err != nil {
				t.Fatal(err)
			}
			part, err := selected.Package(t.Context(), "lamp")
			if err != nil {
				t.Fatal(err)
			}
			if got := len(part.Packages[0].Deprecations); got != test.want {
				t.Errorf("%s: %d deprecations", test.reason, got)
			}
			if len(part.Custom) != 1 {
				t.Errorf("custom objects: %v", part.Custom)
			}
			if other, err := selected.Package(t.Context(), "oil"); err != nil || len(other.Packages) > 0 {
				t.Errorf("a package that is not selected: %v, %v", other, err)
			}
		})
	}
}

// TestInvalid checks that an invalid package is reported only if it is selected.
func TestInvalid(t *testing.T) {
	r := open(t, lamps+"package broken stable\n")
	if got := show(t, r, &Selection{Packages: []Package{{Name: "oil"}}}); got != "oil/stable*: v1" {
		t.Errorf("got %s", got)
	}
	want := `catalog.json:14: package "broken": default channel "stable" not found in channels list; add the channel, or set defaultChannel to the name of one of its channels` + "\n" +
		`catalog.json:14: package "broken": package must contain at least one channel; add an olm.channel object for it`
	if diff := cmp.Diff(want, show(t, r, &Selection{Heads: true})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
