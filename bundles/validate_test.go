package bundles

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// validCatalog returns a valid catalog that cases damage.
func validCatalog() *Catalog {
	bundle := func(name, version string) *Bundle {
		return &Bundle{
			Name: name, Package: "p", Image: "example.org/p:" + version, Origin: Origin{File: "p.json", Line: 3},
			Properties: []Property{{
				Type: TypePackage, Value: json.RawMessage(`{"packageName":"p","version":"` + version + `"}`),
			}},
		}
	}
	return &Catalog{Packages: []*Package{{
		Name: "p", DefaultChannel: "stable", Origin: Origin{File: "p.json", Line: 1},
		Channels: []*Channel{{
			Name: "stable", Package: "p", Origin: Origin{File: "p.json", Line: 2},
			Entries: []Entry{{Name: "p.v2", Replaces: "p.v1"}, {Name: "p.v1"}},
		}},
		Bundles: []*Bundle{bundle("p.v1", "1.0.0"), bundle("p.v2", "2.0.0")},
	}}}
}

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		reason string
		damage func(*Catalog, *Package)
		want   []string
	}{
		"Valid": {reason: "nothing is wrong", damage: func(*Catalog, *Package) {}},
		"Several": {
			reason: "all problems are reported at once and in order",
			damage: func(_ *Catalog, p *Package) {
				p.DefaultChannel = "none"
				p.Bundles[0].Image = "Upper/Case"
				p.Channels[0].Entries[0].SkipRange = ">=x"
			},
			want: []string{
				`p.json:1: package "p": default channel "none" not found in channels list; add the channel, or set defaultChannel to the name of one of its channels`,
				`p.json:3: package "p", bundle "p.v1": image: invalid image pull spec "Upper/Case": invalid reference format: repository name (Case) must be lowercase; write it as host/repository:tag or host/repository@sha256:digest`,
				`p.json:2: package "p", channel "stable", bundle "p.v2": invalid skipRange: parsing version range ">=x": Could not get version from string: ">=x"; write a range such as >=1.0.0 <1.2.0`,
			},
		},
		"Duplicate": {
			reason: "both places are named",
			damage: func(c *Catalog, _ *Package) {
				c.Packages = append(c.Packages, &Package{
					Name: "p", DefaultChannel: "stable", Channels: c.Packages[0].Channels, Bundles: c.Packages[0].Bundles,
					Origin: Origin{File: "q.json", Line: 7},
				})
			},
			want: []string{`q.json:7: package "p": duplicate package, first declared in p.json:1; keep one olm.package object`},
		},
		"Cycle": {
			reason: "the cycle and its channel are named",
			damage: func(_ *Catalog, p *Package) {
				p.Channels[0].Entries = []Entry{{Name: "p.v2", Replaces: "p.v1"}, {Name: "p.v1", Replaces: "p.v2"}}
			},
			want: []string{`p.json:2: package "p", channel "stable": no channel head found in graph; one entry must be neither replaced nor skipped by another`},
		},
		"NoChannel": {
			reason: "a bundle in no channel",
			damage: func(_ *Catalog, p *Package) { p.Channels[0].Entries = p.Channels[0].Entries[:1] },
			want:   []string{`p.json:3: package "p", bundle "p.v1": bundle not found in any channel entries; add it to the entries of a channel or remove it`},
		},
		"Stray": {
			reason: "objects of undeclared packages",
			damage: func(c *Catalog, _ *Package) {
				c.Strays = []Stray{{Schema: SchemaChannel, Package: "q", Name: "a\nb", Origin: Origin{File: "f"}}, {Schema: SchemaBundle, Name: "b"}}
			},
			want: []string{
				`olm.bundle "b" names no package; set its package field`,
				`f: package "q": olm.channel "a\nb" belongs to a package that the catalog does not declare; add an olm.package object of that name or correct the package field`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			catalog := validCatalog()
			tc.damage(catalog, catalog.Packages[0])
			err := catalog.Validate()
			var got []string
			for _, p := range AsProblems(err) {
				got = append(got, p.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if err != nil && strings.Count(err.Error(), "\n") != len(tc.want)-1 {
				t.Errorf("%s: want one line a problem, got %q", tc.reason, err.Error())
			}
		})
	}
}

func TestAsProblems(t *testing.T) {
	errBoom := errors.New("boom")
	if got := AsProblems(errBoom); len(got) != 1 || got[0].Message != "boom" {
		t.Errorf("AsProblems of another error: %v", got)
	}
	if got := AsProblems(nil); got != nil {
		t.Errorf("AsProblems(nil): %v", got)
	}
}

func TestDeprecated(t *testing.T) {
	p := &Package{Deprecations: []DeprecationList{{Entries: []Deprecation{
		{Reference: Reference{Schema: SchemaPackage}, Message: "gone"},
		{Reference: Reference{Schema: SchemaBundle, Name: "b"}, Message: "broken"},
	}}}}
	if message, ok := p.Deprecated(SchemaPackage, "whatever"); !ok || message != "gone" {
		t.Errorf("package: %q, %v", message, ok)
	}
	if message, ok := p.Deprecated(SchemaBundle, "b"); !ok || message != "broken" {
		t.Errorf("bundle: %q, %v", message, ok)
	}
	if _, ok := p.Deprecated(SchemaChannel, "b"); ok {
		t.Error("a channel is not a bundle")
	}
}

func TestProblemString(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 1<<20)
	cases := map[string]struct {
		reason  string
		problem Problem
		want    string
	}{
		"Plain":   {reason: "names are left alone", problem: Problem{File: "a/b c.yaml:3", Package: "p", Message: "m", Remedy: "r"}, want: `a/b c.yaml:3: package "p": m; r`},
		"Control": {reason: "a terminal gets no orders", problem: Problem{File: "a\x1b[31m\n", Message: "m\x1b[0m\nn"}, want: "\"a\\x1b[31m\\n\": m\ufffd[0m n"},
		"Long":    {reason: "names are shortened between characters", problem: Problem{Package: "x" + long, Message: "m"}, want: `package "x` + long[:196] + `…": m`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.problem.String(); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
	if got := (Problem{File: long, Package: long, Channel: long, Bundle: long, Message: long, Remedy: long}).String(); len(got) > 8000 {
		t.Errorf("a line of %d bytes", len(got))
	}
}
