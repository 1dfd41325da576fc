package sources

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMirrorRules checks the order of the sources that nodes of OpenShift ask.
func TestMirrorRules(t *testing.T) {
	const source = "source.test/op"
	rule := func(object string, mirrors ...string) MirrorRule {
		return MirrorRule{Object: object, Source: source, Mirrors: mirrors}
	}
	never := func(r MirrorRule) MirrorRule {
		r.NeverContactSource = true
		return r
	}
	forTags := func(r MirrorRule) MirrorRule {
		r.ForTags = true
		return r
	}
	of := func(other string, r MirrorRule) MirrorRule {
		r.Source = other
		return r
	}
	for name, test := range map[string]struct {
		rules        []MirrorRule
		digest, tag  string
		image, where string
	}{
		"One":         {rules: []MirrorRule{rule("a", "b", "c")}, digest: "b c source.test/op", tag: "source.test/op"},
		"Tags":        {rules: []MirrorRule{forTags(rule("a", "b", "c"))}, digest: "source.test/op", tag: "b c source.test/op"},
		"Both":        {rules: []MirrorRule{rule("a", "b"), forTags(rule("c", "d"))}, digest: "b source.test/op", tag: "d source.test/op", where: "a and c"},
		"Never":       {rules: []MirrorRule{never(rule("a", "b")), rule("c", "d")}, digest: "b d", tag: ""},
		"NeverOfTags": {rules: []MirrorRule{never(forTags(rule("a", "b"))), rule("c", "d")}, digest: "d", tag: "b"},
		"Interleaved": {rules: []MirrorRule{rule("a", "b", "d"), rule("c", "b", "c", "d")}, digest: "b c d source.test/op", tag: "source.test/op"},
		"Joined":      {rules: []MirrorRule{rule("a", "c", "d"), rule("c", "b", "c")}, digest: "b c d source.test/op", tag: "source.test/op"},
		"Cycle":       {rules: []MirrorRule{rule("a", "b", "c"), rule("c", "c", "b")}, digest: "b c source.test/op", tag: "source.test/op"},
		"SourceFirst": {rules: []MirrorRule{rule("a", source, "b")}, digest: "source.test/op b source.test/op", tag: "source.test/op"},
		"SourceOnly":  {rules: []MirrorRule{never(rule("a", source))}, digest: "source.test/op", tag: "source.test/op"},
		"None":        {rules: []MirrorRule{never(rule("a"))}, digest: "source.test/op", tag: "source.test/op"},
		"Nested":      {rules: []MirrorRule{of("source.test", rule("a", "b")), rule("c", "d")}, digest: "d source.test/op", tag: "source.test/op"},
		"Wider":       {rules: []MirrorRule{of("source.test", rule("a", "b"))}, digest: "b/op source.test/op", tag: "source.test/op"},
		"Wildcard":    {rules: []MirrorRule{of("*.test", rule("a", "b"))}, digest: "b/op source.test/op", tag: "source.test/op"},
		"OtherSource": {rules: []MirrorRule{of("source.test/o", rule("a", "b"))}, digest: "source.test/op", tag: "source.test/op"},
		"Repeated":    {rules: []MirrorRule{rule("a", "b"), rule("a", "b")}, digest: "b source.test/op", tag: "source.test/op", where: "a"},
		"SourceCycle": {rules: []MirrorRule{rule("a", "b", source, "c"), rule("c", "c")}, digest: "b c source.test/op", tag: "source.test/op"},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range test.rules {
				for j, mirror := range test.rules[i].Mirrors {
					if mirror != source {
						test.rules[i].Mirrors[j] = mirror + ".test/m"
					}
				}
			}
			table, err := FromMirrorRules(test.rules)
			if err != nil {
				t.Fatal(err)
			}
			for suffix, want := range map[string]string{someDigest: test.digest, ":v1": test.tag} {
				asked, _ := routeOf(t, table, source+suffix)
				for i := range asked {
					asked[i] = strings.TrimSuffix(asked[i], suffix)
					if !strings.HasPrefix(asked[i], source) {
						asked[i] = strings.Replace(asked[i], ".test/m", "", 1)
					}
				}
				if diff := cmp.Diff(want, strings.Join(asked, " ")); diff != "" {
					t.Errorf("%s (-want, +got):\n%s", suffix, diff)
				}
			}
			if test.where != "" && table.registries[0].origin != test.where {
				t.Errorf("the rule is of %q, want %q", table.registries[0].origin, test.where)
			}
		})
	}
	_, err := FromMirrorRules([]MirrorRule{rule("ImageDigestMirrorSet a", "https://b.test")})
	if err == nil || !strings.Contains(err.Error(), `ImageDigestMirrorSet a: "https://b.test" is a URL; correct the object: write host[:port][/path]`) {
		t.Errorf("got %v", err)
	}
}
