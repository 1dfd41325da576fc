package selection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// needs has bundles with requirements of every kind.
const needs = `
package app stable
channel app stable app.v1 app.v2>app.v1
bundle app app.v1 1.0.0 olm.package.required={"packageName":"lib","versionRange":"<2.0.0"}
bundle app app.v2 2.0.0 olm.gvk.required={"group":"g","version":"v1","kind":"Lib"}
package both stable
channel both stable both.v1
bundle both both.v1 1.0.0 olm.constraint={"all":{"constraints":[{"package":{"packageName":"lib","versionRange":">=2.0.0"}},{"gvk":{"group":"g","version":"v1","kind":"Old"}}]}}
package label stable
channel label stable label.v1
bundle label label.v1 1.0.0 olm.label.required={"label":"blue"}
package lib stable
channel lib old lib.v1
channel lib stable lib.v1 lib.v2>lib.v1 lib.v3>lib.v2
bundle lib lib.v1 1.0.0 olm.gvk={"group":"g","version":"v1","kind":"Lib"} olm.gvk={"group":"g","version":"v1","kind":"Old"}
bundle lib lib.v2 2.0.0 olm.gvk={"group":"g","version":"v1","kind":"Lib"}
bundle lib lib.v3 3.0.0 olm.gvk={"group":"g","version":"v1","kind":"Lib"} olm.package.required={"packageName":"store","versionRange":">=1.0.0"}
package lone stable
channel lone stable lone.v1
bundle lone lone.v1 1.0.0 olm.gvk.required={"group":"none","version":"v1","kind":"None"} olm.constraint={"cel":{"rule":"true"}}
package odd stable
channel odd stable odd.v1
bundle odd odd.v1 1.0.0 olm.constraint={"any":{"constraints":[{"package":{"packageName":"gone","versionRange":"1.x"}},{"package":{"packageName":"store","versionRange":"1.x"}}]}}
package rule stable
channel rule stable rule.v1
bundle rule rule.v1 1.0.0 olm.constraint={"all":{"constraints":[{"gvk":{"group":"g","version":"v1","kind":"Lib"}},{"cel":{"rule":"1==1"}}]}}
package store stable
channel store stable store.v1
bundle store store.v1 1.0.0 olm.label={"label":"blue"}
package zlib stable
channel zlib stable zlib.v1
bundle zlib zlib.v1 1.0.0 olm.gvk={"group":"g","version":"v1","kind":"Lib"}
`

func TestDependencies(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		terms  Terms
		want   string
		added  []Addition
		unmet  []Unmet
	}{
		"API": {
			reason: "the head of a default channel, of the first package, and what that requires", terms: Terms{Packages: []string{"app@2.0.0"}},
			want: "app/stable*: v2\nlib/stable*: v3\nstore/stable*: v1",
			added: []Addition{
				{Package: "lib", Channel: "stable", Bundle: "lib.v3", ForPackage: "app", ForBundle: "app.v2", Requirement: "the API g/v1, Kind=Lib"},
				{Package: "store", Channel: "stable", Bundle: "store.v1", ForPackage: "lib", ForBundle: "lib.v3", Requirement: `package "store" in the range ">=1.0.0"`},
			},
		},
		"Package": {
			reason: "a head of another channel before one that is none", terms: Terms{Packages: []string{"app@1.0.0"}},
			want: "app/stable*: v1\nlib/old*: v1",
			added: []Addition{
				{Package: "lib", Channel: "old", Bundle: "lib.v1", ForPackage: "app", ForBundle: "app.v1", Requirement: `package "lib" in the range "<2.0.0"`},
			},
		},
		"Present": {
			reason: "what is kept already will do", terms: Terms{Packages: []string{"app@2.0.0", "zlib"}}, want: "app/stable*: v2\nzlib/stable*: v1",
		},
		"Beyond": {
			reason: "what is required is added to what was chosen of the package", terms: Terms{Packages: []string{"app@1.0.0", "lib@2.0.0"}},
			want: "app/stable*: v1\nlib/old: v1\nlib/stable*: v2",
			added: []Addition{
				{Package: "lib", Channel: "old", Bundle: "lib.v1", ForPackage: "app", ForBundle: "app.v1", Requirement: `package "lib" in the range "<2.0.0"`},
			},
		},
		"Parts": {
			reason: "two bundles meet what no bundle meets alone", terms: Terms{Packages: []string{"both"}},
			want: "both/stable*: v1\nlib/old: v1\nlib/stable*: v3\nstore/stable*: v1",
			added: []Addition{
				{Package: "lib", Channel: "stable", Bundle: "lib.v3", ForPackage: "both", ForBundle: "both.v1", Requirement: `package "lib" in the range ">=2.0.0"`},
				{Package: "lib", Channel: "old", Bundle: "lib.v1", ForPackage: "both", ForBundle: "both.v1", Requirement: "the API g/v1, Kind=Old"},
				{Package: "store", Channel: "stable", Bundle: "store.v1", ForPackage: "lib", ForBundle: "lib.v3", Requirement: `package "store" in the range ">=1.0.0"`},
			},
		},
		"Label": {
			reason: "by label", terms: Terms{Packages: []string{"label"}}, want: "label/stable*: v1\nstore/stable*: v1",
			added: []Addition{{Package: "store", Channel: "stable", Bundle: "store.v1", ForPackage: "label", ForBundle: "label.v1", Requirement: `a bundle with the label "blue"`}},
		},
		"Any": {
			reason: "one way is enough", terms: Terms{Packages: []string{"odd"}}, want: "odd/stable*: v1\nstore/stable*: v1",
			added: []Addition{{
				Package: "store", Channel: "stable", Bundle: "store.v1", ForPackage: "odd", ForBundle: "odd.v1",
				Requirement: `one of (package "gone" in the range "1.x"; package "store" in the range "1.x")`,
			}},
		},
		"Rule": {
			reason: "what an expression says besides is not known", terms: Terms{Packages: []string{"rule", "zlib"}}, want: "rule/stable*: v1\nzlib/stable*: v1",
			unmet: []Unmet{{Package: "rule", Bundle: "rule.v1", Requirement: `all of (the API g/v1, Kind=Lib; the rule "1==1")`, Expression: true}},
		},
		"Nothing": {
			reason: "it may be elsewhere", terms: Terms{Packages: []string{"lone"}}, want: "lone/stable*: v1",
			unmet: []Unmet{
				{Package: "lone", Bundle: "lone.v1", Requirement: "the API none/v1, Kind=None"},
				{Package: "lone", Bundle: "lone.v1", Requirement: `the rule "true"`, Expression: true},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.terms.Dependencies = true
			s, err := test.terms.Selection()
			if err != nil {
				t.Fatal(err)
			}
			r := open(t, needs)
			if diff := cmp.Diff(test.want, show(t, r, s)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", test.reason, diff)
			}
			selected, err := Open(t.Context(), r, s)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.added, selected.Additions()); diff != "" {
				t.Errorf("%s: additions: -want +got:\n%s", test.reason, diff)
			}
			if diff := cmp.Diff(test.unmet, selected.Unmet()); diff != "" {
				t.Errorf("%s: unmet: -want +got:\n%s", test.reason, diff)
			}
		})
	}
}

// TestDependenciesJoin checks that the head of a channel is kept if nothing else joins the required
// bundles of the channel.
func TestDependenciesJoin(t *testing.T) {
	const text = `
package a stable
channel a stable a.v1 a.v2>a.v1
bundle a a.v1 1.0.0 olm.package.required={"packageName":"p","versionRange":"1.0.0"}
bundle a a.v2 2.0.0 olm.package.required={"packageName":"p","versionRange":"2.0.0"}
package p c
channel p c p.v1 p.v2 p.v3!p.v1!p.v2
bundle p p.v1 1.0.0
bundle p p.v2 2.0.0
bundle p p.v3 3.0.0
`
	s := &Selection{Packages: []Package{{Name: "a"}}, Dependencies: true}
	if diff := cmp.Diff("a/stable*: v1 v2\np/c*: v1 v2 v3", show(t, open(t, text), s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
