package constraint_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
)

// subject returns the operator of the tests.
func subject(tb testing.TB) *constraint.Subject {
	tb.Helper()
	s, requires, err := constraint.Parse([]constraint.Property{
		{Type: "olm.package", Value: `{"packageName":"crate","version":"1.2"}`},
		{Type: "olm.gvk", Value: `{"group":"g.example.com","version":"v1","kind":"Crate"}`},
		{Type: "olm.gvk", Value: `{"group":"g.example.com","version":"v1","kind":"Lid"}`},
		{Type: "olm.label", Value: `{"label":"blue"}`},
		{Type: "olm.maxOpenShiftVersion", Value: `"4.20"`},
		{Type: "made.up", Value: `{"size":3,"names":["a","b"]}`},
	})
	if err != nil || requires != nil {
		tb.Fatalf("requires %v, error %v", requires, err)
	}
	return &s
}

// parse parses one property with a requirement.
func parse(tb testing.TB, kind, value string) constraint.Constraint {
	tb.Helper()
	_, requires, err := constraint.Parse([]constraint.Property{{Type: kind, Value: value}})
	if err != nil {
		tb.Fatal(err)
	}
	if len(requires) != 1 {
		tb.Fatalf("requires %v", requires)
	}
	return requires[0]
}

func TestParseSubject(t *testing.T) {
	s := subject(t)
	if s.Package != "crate" || s.Version.String() != "1.2.0" || len(s.GVKs) != 2 || len(s.Labels) != 1 || s.Deprecated || len(s.Properties) != 6 {
		t.Errorf("subject %+v", s)
	}
	deprecated, _, err := constraint.Parse([]constraint.Property{{Type: "olm.deprecated", Value: `{}`}})
	if err != nil || !deprecated.Deprecated {
		t.Errorf("subject %+v, error %v", deprecated, err)
	}
}

const (
	crate  = `{"gvk":{"group":"g.example.com","version":"v1","kind":"Crate"}}`
	other  = `{"gvk":{"group":"g.example.com","version":"v1","kind":"Other"}}`
	range1 = `{"package":{"packageName":"crate","versionRange":">=1.0.0 <2.0.0"}}`
	range2 = `{"package":{"packageName":"crate","versionRange":">=2.0.0"}}`
)

// TestMetBy checks each type of constraint.
func TestMetBy(t *testing.T) {
	for name, test := range map[string]struct {
		kind, value string
		met         bool
		text        string
	}{
		"package": {
			"olm.package.required", `{"packageName":"crate","versionRange":">=1.0.0"}`, true, "with package: crate and with version in range: >=1.0.0",
		},
		"package of another version": {
			"olm.package.required", `{"packageName":"crate","versionRange":"<1.0.0"}`, false, "with package: crate and with version in range: <1.0.0",
		},
		"another package": {
			"olm.package.required", `{"packageName":"barrel","versionRange":">=1.0.0"}`, false, "with package: barrel and with version in range: >=1.0.0",
		},
		"API": {
			"olm.gvk.required", `{"group":"g.example.com","version":"v1","kind":"Crate"}`, true,
			"providing an API with group: g.example.com, version: v1, kind: Crate",
		},
		"API of another version": {
			"olm.gvk.required", `{"group":"g.example.com","version":"v2","kind":"Crate"}`, false,
			"providing an API with group: g.example.com, version: v2, kind: Crate",
		},
		"label":         {"olm.label.required", `{"label":"blue"}`, true, "with label: blue"},
		"another label": {"olm.label.required", `{"label":"red"}`, false, "with label: red"},
		"failure message": {
			"olm.constraint", `{"failureMessage":"needs\na crate","gvk":{"group":"g.example.com","version":"v1","kind":"Crate"}}`, true, "needs a crate",
		},
		"all": {
			"olm.constraint", `{"all":{"constraints":[` + crate + `,` + range1 + `]}}`, true,
			"all of (providing an API with group: g.example.com, version: v1, kind: Crate; with package: crate and with version in range: >=1.0.0 <2.0.0)",
		},
		"not all": {
			"olm.constraint", `{"all":{"constraints":[` + crate + `,` + range2 + `]}}`, false,
			"all of (providing an API with group: g.example.com, version: v1, kind: Crate; with package: crate and with version in range: >=2.0.0)",
		},
		"any": {
			"olm.constraint", `{"any":{"constraints":[` + range2 + `,` + range1 + `]}}`, true,
			"at least one of (with package: crate and with version in range: >=2.0.0; with package: crate and with version in range: >=1.0.0 <2.0.0)",
		},
		"none of any": {
			"olm.constraint", `{"any":{"constraints":[` + other + `]}}`, false,
			"at least one of (providing an API with group: g.example.com, version: v1, kind: Other)",
		},
		"not": {
			"olm.constraint", `{"not":{"constraints":[` + other + `,` + range2 + `]}}`, true,
			"none of (providing an API with group: g.example.com, version: v1, kind: Other; with package: crate and with version in range: >=2.0.0)",
		},
		"not, but one is": {
			"olm.constraint", `{"not":{"constraints":[` + other + `,` + crate + `]}}`, false,
			"none of (providing an API with group: g.example.com, version: v1, kind: Other; providing an API with group: g.example.com, version: v1, kind: Crate)",
		},
		"nested": {
			"olm.constraint", `{"all":{"constraints":[{"not":{"constraints":[` + range2 + `]}},{"any":{"constraints":[` + other + `,` + crate + `]}}]}}`, true,
			"all of (none of (with package: crate and with version in range: >=2.0.0); at least one of " +
				"(providing an API with group: g.example.com, version: v1, kind: Other; providing an API with group: g.example.com, version: v1, kind: Crate))",
		},
		"cel": {
			"olm.constraint", rule("properties.exists(p, p.type == 'made.up' && p.value.size == 3)"), true,
			"with constraint: properties.exists(p, p.type == 'made.up' && p.value.size == 3)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := parse(t, test.kind, test.value)
			if got := c.MetBy(subject(t)); got != test.met {
				t.Errorf("met: %v, want %v", got, test.met)
			}
			if got := c.String(); got != test.text {
				t.Errorf("text\n got %s\nwant %s", got, test.text)
			}
		})
	}
}

func TestUnknownVersionMeetsNoRange(t *testing.T) {
	c := parse(t, "olm.package.required", `{"packageName":"crate","versionRange":">=0.0.0"}`)
	if c.MetBy(&constraint.Subject{Package: "crate"}) {
		t.Error("an operator that does not say its version is in a range")
	}
}

// rule returns an olm.constraint with an expression.
func rule(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return `{"cel":{"rule":` + string(quoted) + `}}`
}

func nested(depth int) string {
	return strings.Repeat(`{"all":{"constraints":[`, depth-1) + crate + strings.Repeat(`]}}`, depth-1)
}

func TestParseErrors(t *testing.T) {
	for name, test := range map[string]struct{ kind, value, want string }{
		"no JSON":               {"olm.gvk", `{`, "decoding value: unexpected end of JSON input"},
		"no value":              {"olm.package", ``, "decoding value: unexpected end of JSON input"},
		"null":                  {"olm.gvk", ` null `, "decoding value: it must be an object, found null"},
		"a list":                {"olm.package", `[]`, "decoding value: wrong type: it must be an object, found array"},
		"package without name":  {"olm.package", `{"version":"1.0.0"}`, `field "packageName" must not be empty`},
		"label without text":    {"olm.label", `{}`, `field "label" must not be empty`},
		"range":                 {"olm.package.required", `{"packageName":"a","versionRange":"new"}`, `parsing version range "new": Could not get version from string: "new"`},
		"required without name": {"olm.package.required", `{"versionRange":">1.0.0"}`, `field "packageName" must not be empty`},
		"API without kind":      {"olm.gvk.required", `{"group":"g","version":"v1"}`, `field "kind" must not be empty`},
		"unknown constraint":    {"olm.constraint", `{"some":{}}`, `parse olm.constraint: json: unknown field "some"`},
		"unknown field below":   {"olm.constraint", `{"all":{"constraints":[],"extra":1}}`, `parse olm.constraint: json: unknown field "extra"`},
		"nothing":               {"olm.constraint", `{}`, "convert olm.constraint to resolver predicate: exactly one of gvk, package, all, any, not and cel must be set, found 0"},
		"two of them":           {"olm.constraint", crate[:len(crate)-1] + "," + range1[1:], "convert olm.constraint to resolver predicate: exactly one of gvk, package, all, any, not and cel must be set, found 2"},
		"text behind":           {"olm.constraint", crate + crate, "parse olm.constraint: there is more text behind the JSON"},
		"empty list":            {"olm.constraint", `{"any":{"constraints":[]}}`, "convert olm.constraint to resolver predicate: any: the list of constraints must not be empty"},
		"wrong below":           {"olm.constraint", `{"all":{"constraints":[` + crate + `,{}]}}`, "convert olm.constraint to resolver predicate: all.constraints[1]: exactly one of gvk, package, all, any, not and cel must be set, found 0"},
		"too large":             {"olm.constraint", `{"failureMessage":"` + strings.Repeat("x", 131072) + `"}`, "the constraint is too large: it has 131093 bytes, the limit is 131072"},
		"rule of another type":  {"olm.constraint", rule("properties"), `convert olm.constraint to resolver predicate: compiling rule "properties": the rule must be true or false, not list(map(string, dyn))`},
		"rule without end":      {"olm.constraint", rule(strings.Repeat("(", 100)), ""},
		"rule too long":         {"olm.constraint", rule("true" + strings.Repeat(" ", 16<<10)), "convert olm.constraint to resolver predicate: the constraint is too large: its rule has 16388 bytes, the limit is 16384"},
		"rule with an unknown name": {
			"olm.constraint", rule("secrets == 1"),
			`convert olm.constraint to resolver predicate: compiling rule "secrets == 1": ERROR: <input>:1:1: undeclared reference to 'secrets' | secrets == 1 | ^`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			properties := []constraint.Property{{Type: "made.up", Value: "1"}, {Type: test.kind, Value: test.value}}
			_, _, err := constraint.Parse(properties)
			got := fmt.Sprint(err)
			want := fmt.Sprintf("properties[1] of type %q: %s; ask the publisher of the catalog to fix it", test.kind, test.want)
			if test.want != "" && got != want {
				t.Errorf("error\n got %s\nwant %s", got, want)
			}
			if err == nil || len(got) > 1000 || strings.ContainsFunc(got, func(r rune) bool { return r < ' ' }) {
				t.Errorf("error %q", got)
			}
		})
	}
}

func TestDepth(t *testing.T) {
	parse(t, "olm.constraint", nested(32))
	_, _, err := constraint.Parse([]constraint.Property{{Type: "olm.constraint", Value: nested(33)}})
	if err == nil || !strings.Contains(err.Error(), "nested more than 32 deep") {
		t.Errorf("error %v", err)
	}
	for _, value := range []string{nested(3000), strings.Repeat(`{"all":{"constraints":[`, 5000)} {
		if _, _, err := constraint.Parse([]constraint.Property{{Type: "olm.constraint", Value: value}}); err == nil {
			t.Error("no error")
		}
	}
}

func TestTwoPackages(t *testing.T) {
	one := constraint.Property{Type: "olm.package", Value: `{"packageName":"a","version":"1.0.0"}`}
	if _, _, err := constraint.Parse([]constraint.Property{one, one}); err != nil {
		t.Error(err)
	}
	two := constraint.Property{Type: "olm.package", Value: `{"packageName":"a","version":"1.0.1"}`}
	_, _, err := constraint.Parse([]constraint.Property{one, two})
	want := `properties[1] of type "olm.package": the bundle also declares another package or version; ask the publisher of the catalog to fix it`
	if fmt.Sprint(err) != want {
		t.Errorf("error %v", err)
	}
}

// TestThousandWayAny checks that an any with a thousand members is evaluated like others, and that its text has
// a bounded length.
func TestThousandWayAny(t *testing.T) {
	c := parse(t, "olm.constraint", `{"any":{"constraints":[`+strings.Repeat(other+",", 999)+crate+`]}}`)
	if !c.MetBy(subject(t)) {
		t.Error("it is not met")
	}
	if got := len(c.String()); got > 1100 {
		t.Errorf("its text has %d bytes", got)
	}
}

func texts(constraints []constraint.Constraint) []string {
	var out []string
	for i := range constraints {
		out = append(out, constraints[i].String())
	}
	return out
}

func TestSplit(t *testing.T) {
	pkg := func(name string) string { return `{"package":{"packageName":"` + name + `","versionRange":">1.0.0"}}` }
	text := func(name string) string { return "with package: " + name + " and with version in range: >1.0.0" }
	list := func(operator string, members ...string) string {
		return `{"` + operator + `":{"constraints":[` + strings.Join(members, ",") + `]}}`
	}
	yes := rule("true")
	for name, test := range map[string]struct {
		value string
		parts []string
	}{
		"one":                  {pkg("a"), nil},
		"not":                  {list("not", pkg("a"), pkg("b")), nil},
		"any":                  {list("any", pkg("a"), pkg("b")), nil},
		"rule":                 {yes, nil},
		"all of one":           {list("all", yes, pkg("a")), nil},
		"all of nothing there": {list("all", yes, list("not", pkg("a"))), nil},
		"all of two":           {list("all", pkg("a"), pkg("b")), []string{"all of (" + text("a") + ")", "all of (" + text("b") + ")"}},
		"all of an any": {
			list("all", list("any", pkg("a"), pkg("b")), pkg("c")),
			[]string{"all of (at least one of (" + text("a") + "; " + text("b") + "))", "all of (" + text("c") + ")"},
		},
		"an any with a rule says what will do": {
			list("all", list("any", pkg("a"), yes), pkg("b"), pkg("c")),
			[]string{
				"all of (" + text("b") + "; at least one of (" + text("a") + "; with constraint: true))",
				"all of (" + text("c") + "; at least one of (" + text("a") + "; with constraint: true))",
			},
		},
		"all within all": {
			list("all", pkg("a"), list("all", pkg("b"), yes)),
			[]string{"all of (" + text("a") + "; with constraint: true)", "all of (" + text("b") + "; with constraint: true)"},
		},
		"several things besides": {
			list("all", pkg("a"), yes, pkg("b"), list("not", pkg("c"))),
			[]string{
				"all of (" + text("a") + "; all of (with constraint: true; none of (" + text("c") + ")))",
				"all of (" + text("b") + "; all of (with constraint: true; none of (" + text("c") + ")))",
			},
		},
		"what all says besides": {
			list("all", pkg("a"), list("not", pkg("c")), pkg("b")),
			[]string{"all of (" + text("a") + "; none of (" + text("c") + "))", "all of (" + text("b") + "; none of (" + text("c") + "))"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := parse(t, "olm.constraint", test.value)
			if diff := cmp.Diff(test.parts, texts(c.Split())); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSplitOfMany checks that the parts share their common members, and that their number is bounded.
func TestSplitOfMany(t *testing.T) {
	all := func(wanted, filters int) constraint.Constraint {
		members := slices.Concat(slices.Repeat([]string{crate}, wanted), slices.Repeat([]string{`{"not":{"constraints":[` + other + `]}}`}, filters))
		return parse(t, "olm.constraint", `{"all":{"constraints":[`+strings.Join(members, ",")+`]}}`)
	}
	for _, test := range []struct{ wanted, filters, parts int }{{2, 0, 2}, {16, 1400, 16}, {17, 1, 0}, {1000, 500, 0}} {
		c := all(test.wanted, test.filters)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		parts := c.Split()
		runtime.ReadMemStats(&after)
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 4<<20 {
			t.Errorf("%d of %d take %d bytes", test.wanted, test.filters, allocated)
		}
		if len(parts) != test.parts {
			t.Errorf("%d of %d give %d parts, want %d", test.wanted, test.filters, len(parts), test.parts)
		}
	}
}

// drawConstraint draws a constraint as JSON of some depth over a few packages and APIs.
func drawConstraint(t *rapid.T, depth int) string {
	kinds := []string{"gvk", "package"}
	if depth > 0 {
		kinds = append(kinds, "all", "any", "not")
	}
	switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); kind {
	case "gvk":
		return fmt.Sprintf(`{"gvk":{"group":"g","version":"v","kind":%q}}`, rapid.SampledFrom([]string{"A", "B"}).Draw(t, "API"))
	case "package":
		return fmt.Sprintf(`{"package":{"packageName":%q,"versionRange":%q}}`,
			rapid.SampledFrom([]string{"a", "b"}).Draw(t, "package"), rapid.SampledFrom([]string{">1.0.0", "<=1.0.0"}).Draw(t, "range"))
	default:
		members := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return drawConstraint(t, depth-1) }), 1, 3).Draw(t, "members")
		return `{"` + kind + `":{"constraints":[` + strings.Join(members, ",") + `]}}`
	}
}

func drawSubject(t *rapid.T) constraint.Subject {
	properties := []constraint.Property{{Type: "olm.package", Value: fmt.Sprintf(`{"packageName":%q,"version":%q}`,
		rapid.SampledFrom([]string{"a", "b"}).Draw(t, "package"), rapid.SampledFrom([]string{"1.0.0", "1.0.1"}).Draw(t, "version"))}}
	for _, kind := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"A", "B"}), rapid.ID).Draw(t, "APIs") {
		properties = append(properties, constraint.Property{Type: "olm.gvk", Value: fmt.Sprintf(`{"group":"g","version":"v","kind":%q}`, kind)})
	}
	s, _, err := constraint.Parse(properties)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestMeaning checks the meaning of the parts of a constraint. An operator that meets a constraint meets each
// of its parts, and All, Any and Not combine them correctly.
func TestMeaning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := drawConstraint(t, 3)
		_, requires, err := constraint.Parse([]constraint.Property{{Type: "olm.constraint", Value: value}})
		if err != nil {
			t.Fatal(err)
		}
		c, s := requires[0], drawSubject(t)
		met := c.MetBy(&s)
		count := func(list []constraint.Constraint) (n int) {
			for i := range list {
				if list[i].MetBy(&s) {
					n++
				}
			}
			return n
		}
		switch {
		case c.All != nil && met != (count(c.All) == len(c.All)), c.Any != nil && met != (count(c.Any) > 0), c.Not != nil && met != (count(c.Not) == 0):
			t.Fatalf("%s met: %v", value, met)
		}
		if parts := c.Split(); met && count(parts) != len(parts) {
			t.Fatalf("%s is met but not all of %v", value, texts(parts))
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, value := range []string{crate, range1, rule("true"), nested(3), `{"all":{"constraints":[{}]}}`, `{"label":"a"}`, `{"packageName":"a","versionRange":">1 || 2.x"}`} {
		for i := range fuzzed {
			f.Add(i, value)
		}
	}
	f.Fuzz(func(t *testing.T, kind int, value string) {
		if kind < 0 || kind >= len(fuzzed) {
			return
		}
		_, requires, err := constraint.Parse([]constraint.Property{{Type: fuzzed[kind], Value: value}})
		if err != nil && len(err.Error()) > 2000 {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
		for i := range requires {
			requires[i].MetBy(subject(t))
			requires[i].Split()
			if text := requires[i].String(); len(text) > 1100 {
				t.Errorf("the text has %d bytes", len(text))
			}
		}
	})
}

var fuzzed = []string{
	"olm.package", "olm.gvk", "olm.label", "olm.deprecated", "olm.package.required", "olm.gvk.required", "olm.label.required", "olm.constraint",
}
