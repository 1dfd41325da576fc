package selection

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		reason, text, catalog string
		want                  *Selection
		wantErr               string
	}{
		"YAML": {
			reason: "packages in the order of names",
			text: "heads: true\ndependencies: true\npackages:\n- {name: b, versions: '>=1.0.0', defaultChannel: x, from: [b.v1]}\n" +
				"- name: a\n  channels:\n  - name: s\n    versions: <2.0.0\n  - {name: c, heads: true}\n",
			want: &Selection{
				Heads: true, Dependencies: true,
				Packages: []Package{
					{Name: "a", Channels: []Channel{{Name: "c", Heads: true}, {Name: "s", Versions: "<2.0.0"}}},
					{Name: "b", Versions: ">=1.0.0", DefaultChannel: "x", From: []string{"b.v1"}},
				},
			},
		},
		"JSON":     {reason: "is YAML", text: `{"heads":true}`, want: &Selection{Heads: true}},
		"Empty":    {reason: "a selection keeps less than everything", text: `{"dependencies":true}`, wantErr: "the selection is empty: name packages, or set heads"},
		"Nothing":  {reason: "an empty text too", text: "", wantErr: "the selection is empty: name packages, or set heads"},
		"Unknown":  {reason: "a slip of the pen must not widen the selection", text: `{"packages":[{"name":"a","version":"1.0.0"}]}`, wantErr: `reading the selection: json: unknown field "version"`},
		"Type":     {reason: "worded for authors", text: `{"packages":["a"]}`, wantErr: `reading the selection: wrong type: field "packages" must be an object, found string`},
		"Repeated": {reason: "keys come once", text: "heads: true\nheads: false\n", wantErr: `reading the selection: yaml: unmarshal errors:` + "\n" + `  line 2: key "heads" already set in map`},
		"Twice":    {reason: "it is not known which counts", text: `{"packages":[{"name":"a"},{"name":"a"}]}`, wantErr: `package "a": the selection has the package twice; write all that is wanted of it in one place`},
		"Range":    {reason: "names the place", text: `{"packages":[{"name":"a","channels":[{"name":"c","versions":"new"}]}]}`, wantErr: `package "a", channel "c": versions of the selection: parsing version range "new": Could not get version from string: "new"; write a range such as >=1.0.0 <1.2.0`},
		"Ranges":   {reason: "one of them counts", text: `{"packages":[{"name":"a","versions":"1.x","channels":[{"name":"c","versions":"1.x"}]}]}`, wantErr: `package "a", channel "c": the selection has versions of the package and of its channel; keep one of them`},
		"Default":  {reason: "it has to be kept", text: `{"packages":[{"name":"a","defaultChannel":"d","channels":[{"name":"c"}]}]}`, wantErr: `package "a", channel "d": the selection makes it the default channel and does not keep it; add it to the channels of the package`},
		"Kind": {
			reason: "what older tools wrote means other things", text: "apiVersion: mirror.openshift.io/v1alpha2\nkind: ImageSetConfiguration\n",
			wantErr: `the document is of another kind: write the fields of a selection, or an ImageSetConfiguration of mirror.openshift.io/v2alpha1; found apiVersion "mirror.openshift.io/v1alpha2", kind "ImageSetConfiguration"`,
		},
		"Large": {reason: "bounded", text: strings.Repeat(" ", MaxBytes+1), wantErr: "the selection is larger than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(test.text), test.catalog)
			checkParsed(t, test.reason, got, test.want, err, test.wantErr)
		})
	}
}

func checkParsed(t *testing.T, reason string, got, want *Selection, err error, wantErr string) {
	t.Helper()
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != wantErr {
		t.Fatalf("%s: error\n got %s\nwant %s", reason, text, wantErr)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -want +got:\n%s", reason, diff)
	}
	if err != nil || got.IsZero() {
		return
	}
	again, err := Parse([]byte(got.String()), "")
	if diff := cmp.Diff(got, again); diff != "" || err != nil {
		t.Errorf("%s: its text is another selection: %v\n%s", reason, err, diff)
	}
}

// TestParseImageSet checks the meaning of an ImageSetConfiguration against the table of accepted
// cases in oc-mirror's design of its second version, as of 4.18.
func TestParseImageSet(t *testing.T) {
	operators := func(entries string) string {
		return "apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\narchiveSize: 4\nmirror:\n" +
			"  additionalImages: [{name: i}]\n  operators:\n" + entries
	}
	for name, test := range map[string]struct {
		reason, text string
		want         *Selection
		wantErr      string
	}{
		"Catalog": {
			reason: "the head of each channel", text: "  - catalog: c\n", want: &Selection{Heads: true},
		},
		"Full":        {reason: "everything", text: "  - {catalog: c, full: true}\n", want: &Selection{}},
		"Package":     {reason: "the heads of its channels", text: "  - {catalog: c, packages: [{name: p}]}\n", want: &Selection{Packages: []Package{{Name: "p", Heads: true}}}},
		"FullPackage": {reason: "all of it", text: "  - {catalog: c, full: true, packages: [{name: p}]}\n", want: &Selection{Packages: []Package{{Name: "p"}}}},
		"FullChannel": {reason: "all of the channel", text: "  - {catalog: c, full: true, packages: [{name: p, channels: [{name: s}]}]}\n", want: &Selection{Packages: []Package{{Name: "p", Channels: []Channel{{Name: "s"}}}}}},
		"Channels": {
			reason: "the head of each, or a range that both ends belong to",
			text:   "  - {catalog: c, packages: [{name: p, defaultChannel: s, channels: [{name: s}, {name: t, minVersion: 1.0.0, maxVersion: 2.0.0}]}]}\n",
			want: &Selection{Packages: []Package{{
				Name: "p", DefaultChannel: "s", Channels: []Channel{{Name: "s", Heads: true}, {Name: "t", Versions: ">=1.0.0 <=2.0.0"}},
			}}},
		},
		"Minimum": {
			reason: "from there to the heads", text: "  - {catalog: c, skipDependencies: true, targetCatalog: x, packages: [{name: p, minVersion: 1.0.0}]}\n",
			want: &Selection{Packages: []Package{{Name: "p", Versions: ">=1.0.0"}}},
		},
		"ByReference": {
			reason: "the entry of this catalog", text: "  - {catalog: other, full: true}\n  - {catalog: 'oci://here'}\n", want: &Selection{Heads: true},
		},
		"NoEntry":  {reason: "none is for it", text: "  - {catalog: a}\n  - {catalog: b}\n", wantErr: `no entry under mirror.operators of the ImageSetConfiguration is for this catalog: "here"`},
		"TwoOfOne": {reason: "it is not known which", text: "  - {catalog: here}\n  - {catalog: here}\n", wantErr: `several entries under mirror.operators of the ImageSetConfiguration are for this catalog: "here"`},
		"None":     {reason: "nothing to select by", text: "    []\n", wantErr: "the ImageSetConfiguration has nothing under mirror.operators"},
		"Unknown":  {reason: "fields are checked", text: "  - {catalog: c, package: p}\n", wantErr: `reading the selection: json: unknown field "package"`},
		"Both":     {reason: "package and channel", text: "  - {catalog: c, packages: [{name: p, minVersion: 1.0.0, channels: [{name: s}]}]}\n", wantErr: `package "p": the package has channels beside minVersion or maxVersion; set versions at the channels`},
		"FullMin":  {reason: "all of some", text: "  - {catalog: c, full: true, packages: [{name: p, minVersion: 1.0.0}]}\n", wantErr: `package "p": minVersion and maxVersion make no sense with full; remove full, or the versions`},
		"Version":  {reason: "no semantic version", text: "  - {catalog: c, packages: [{name: p, maxVersion: v1}]}\n", wantErr: `package "p": maxVersion "v1" is not a semantic version: No Major.Minor.Patch elements found; write it as MAJOR.MINOR.PATCH, without a v`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(operators(test.text)), "here")
			checkParsed(t, test.reason, got, test.want, err, test.wantErr)
		})
	}
}

func TestTerms(t *testing.T) {
	for name, test := range map[string]struct {
		reason  string
		terms   Terms
		want    *Selection
		wantErr string
	}{
		"None": {reason: "the whole catalog", want: &Selection{}},
		"All": {
			reason: "what is said of one package comes together",
			terms: Terms{
				Packages: []string{"b", "a@>=1.0.0 <2.0.0"}, Channels: []string{"b/t", "b/s/x@1.x"}, From: []string{"a@a.v1", "c@1.0.0"}, Heads: true, Dependencies: true,
			},
			want: &Selection{Heads: true, Dependencies: true, Packages: []Package{
				{Name: "a", Versions: ">=1.0.0 <2.0.0", From: []string{"a.v1"}},
				{Name: "b", Channels: []Channel{{Name: "s/x", Versions: "1.x"}, {Name: "t"}}},
				{Name: "c", From: []string{"1.0.0"}},
			}},
		},
		"NoName":    {reason: "a range of what", terms: Terms{Packages: []string{"@1.0.0"}}, wantErr: `"@1.0.0" is not of the form PACKAGE or PACKAGE@RANGE`},
		"NoRange":   {reason: "cut short", terms: Terms{Packages: []string{"a@"}}, wantErr: `"a@" is not of the form PACKAGE or PACKAGE@RANGE`},
		"NoChannel": {reason: "a package", terms: Terms{Channels: []string{"a"}}, wantErr: `"a" is not of the form PACKAGE/CHANNEL or PACKAGE/CHANNEL@RANGE`},
		"NoBundle":  {reason: "a package", terms: Terms{From: []string{"a"}}, wantErr: `"a" is not of the form PACKAGE@BUNDLE or PACKAGE@VERSION`},
		"OnlyAdds":  {reason: "there is nothing to add to", terms: Terms{Dependencies: true}, wantErr: "dependencies add to what is selected: name packages or channels, or keep heads only"},
		"BadRange":  {reason: "checked as elsewhere", terms: Terms{Packages: []string{"a@new"}}, wantErr: `package "a": versions of the selection: parsing version range "new": Could not get version from string: "new"; write a range such as >=1.0.0 <1.2.0`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.terms.Selection()
			checkParsed(t, test.reason, got, test.want, err, test.wantErr)
		})
	}
}

func TestParseInstalled(t *testing.T) {
	for name, test := range map[string]struct {
		reason, text string
		want         []string
		wantErr      string
	}{
		"List": {
			reason: "names once each, without copies",
			text: `{"kind":"List","items":[{"kind":"ClusterServiceVersion","metadata":{"name":"b.v1"}},{"kind":"ClusterServiceVersion","metadata":{"name":"a.v1"}},` +
				`{"kind":"ClusterServiceVersion","metadata":{"name":"b.v1"}},{"kind":"ClusterServiceVersion","metadata":{"name":"c.v1","labels":{"olm.copiedFrom":"n"}}}]}`,
			want: []string{"a.v1", "b.v1"},
		},
		"YAML":  {reason: "as kubectl prints it", text: "kind: ClusterServiceVersion\nmetadata: {name: a.v1}\n", want: []string{"a.v1"}},
		"None":  {reason: "nothing is installed", text: `{"kind":"ClusterServiceVersionList","items":[]}`},
		"Other": {reason: "a slip", text: `{"kind":"PodList"}`, wantErr: `reading what is installed: it is neither a ClusterServiceVersion nor a list of them: write it with 'kubectl get clusterserviceversions -A -o json'; found kind "PodList"`},
		"Mixed": {reason: "a list of other things", text: `{"kind":"List","items":[{"kind":"Pod"}]}`, wantErr: `reading what is installed: items[0]: it is neither a ClusterServiceVersion nor a list of them: write it with 'kubectl get clusterserviceversions -A -o json'; found kind "Pod"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseInstalled([]byte(test.text))
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != test.wantErr {
				t.Fatalf("%s: error\n got %s\nwant %s", test.reason, text, test.wantErr)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", test.reason, diff)
			}
		})
	}
}

// FuzzParse checks that every selection that can be parsed has a text with the same meaning.
func FuzzParse(f *testing.F) {
	f.Add(`{"packages":[{"name":"a","versions":"1.x"}],"heads":true}`)
	f.Add("apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\nmirror: {operators: [{catalog: c, packages: [{name: p, minVersion: 1.0.0}]}]}\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Parse([]byte(text), "")
		if err != nil {
			return
		}
		if got.IsZero() {
			return
		}
		again, err := Parse([]byte(got.String()), "")
		if err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		if again.String() != got.String() {
			t.Errorf("%s is read as %s", got, again)
		}
	})
}
