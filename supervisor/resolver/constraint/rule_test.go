package constraint_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chandlery/chandlery/supervisor/resolver/constraint"
)

func TestRule(t *testing.T) {
	for text, want := range map[string]bool{
		"true":  true,
		"false": false,
		"properties.exists(p, p.type == 'olm.package' && p.value.packageName == 'crate')":                true,
		"properties.exists(p, p.type == 'olm.package' && semver_compare(p.value.version, '1.2.0') == 0)": true,
		"properties.exists(p, p.type == 'olm.package' && semver_compare(p.value.version, '1.10.0') < 0)": true,
		"properties.exists(p, p.type == 'olm.package' && semver_compare('2', p.value.version) > 0)":      true,
		"properties.exists(p, p['type'] == 'olm.maxOpenShiftVersion' && p.value == '4.20')":              true,
		"properties.exists(p, p.type == 'made.up' && 'b' in p.value.names && p.value.size >= 3)":         true,
		"properties.filter(p, p.type == 'olm.gvk').map(p, p.value.kind) == ['Crate', 'Lid']":             true,
		"properties.all(p, p.type.startsWith('olm.'))":                                                   false,
		"properties.exists(p, has(p.value.missing))":                                                     false,
		"properties.exists(p, p.type == 'olm.label' && p.value.label.matches('^bl'))":                    true,
		"properties.exists(p, p.type == 'made.up' && p.value.missing == 1)":                              false, // an error
		"semver_compare('one', '1.0.0') == 1":                                                            false, // an error
		"1 / 0 == 1":                                                                                     false, // an error
		"properties[100].type == 'olm.package'":                                                          false, // an error
	} {
		c := parse(t, "olm.constraint", rule(text))
		if got := c.MetBy(subject(t)); got != want {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
	}
}

// large is an operator that has many properties.
func large(tb testing.TB) *constraint.Subject {
	tb.Helper()
	properties := []constraint.Property{{Type: "olm.package", Value: `{"packageName":"crate","version":"1.2.0"}`}}
	for i := range 300 {
		properties = append(properties, constraint.Property{
			Type: "olm.gvk", Value: fmt.Sprintf(`{"group":"g%d.example.com","version":"v1","kind":"K"}`, i),
		})
	}
	s, _, err := constraint.Parse(properties)
	if err != nil {
		tb.Fatal(err)
	}
	return &s
}

func TestRuleOverManyProperties(t *testing.T) {
	c := parse(t, "olm.constraint", rule("properties.exists_one(p, p.type == 'olm.gvk' && p.value.group == 'g299.example.com')"))
	if !c.MetBy(large(t)) {
		t.Error("a rule that looks at 300 properties is not met")
	}
}

// endless are rules that would take years, or all memory, if they were let.
func endless() []string {
	wide := func(text string, n int) string { return strings.Repeat(text+", ", n-1) + text }
	return []string{
		strings.Repeat("properties.all(p, ", 20) + "true" + strings.Repeat(")", 20),
		strings.Repeat("properties.exists(p, ", 20) + "false" + strings.Repeat(")", 20),
		"properties.all(a, properties.all(b, properties.all(c, properties.all(d, a != b || c != d || true))))",
		"properties.all(a, properties.all(b, size(properties) > 0))",
		"properties.all(a, properties.all(b, properties == properties))",
		"[properties]" + strings.Repeat(".map(p, properties.map(q, p))", 5) + ".all(p, p == p)",
		"[1]" + strings.Repeat(".map(p, ["+wide("p", 10)+"])", 15) + ".all(p, p == p)",
		"[1]" + strings.Repeat(".map(p, {1: p, 2: p, 3: p})", 40) + ".all(p, p in [p])",
		"properties.map(p, p.type)" + strings.Repeat(".map(p, p+p+p+p)", 40) + ".all(p, p == p)",
		"properties.all(p, properties.all(q, (p.type + '" + strings.Repeat("a", 10_000) + "').matches(q.type + '((a*)*)*b')))",
	}
}

func TestRuleThatDoesNotEnd(t *testing.T) {
	s := large(t)
	for _, text := range endless() {
		_, requires, err := constraint.Parse([]constraint.Property{{Type: "olm.constraint", Value: rule(text)}})
		if err != nil {
			if !strings.Contains(err.Error(), "the rule takes too many steps") {
				t.Errorf("%.60s: %v", text, err)
			}
			continue
		}
		begin := time.Now()
		met := requires[0].MetBy(s)
		took := time.Since(begin)
		t.Logf("%.60s: %s", text, took)
		if met {
			t.Errorf("%.60s is met", text)
		}
		// It is the steps that are counted; this only finds those that are not
		// counted at all.
		if took > 10*time.Second {
			t.Errorf("%.60s took %s", text, took)
		}
	}
}

// TestMeter says that a rule that does not end does not keep whoever asks a whole
// catalog: after some operators nobody is asked any more.
func TestMeter(t *testing.T) {
	c := parse(t, "olm.constraint", rule(endless()[0]))
	simple := parse(t, "olm.constraint", rule("true"))
	s, small := large(t), subject(t)
	var meter constraint.Meter
	for range 1000 {
		if c.MetWithin(s, &meter) {
			t.Fatal("it is met")
		}
	}
	if simple.MetWithin(small, &meter) {
		t.Error("a rule is evaluated although too much has been spent")
	}
	if !simple.MetBy(small) {
		t.Error("another meter stops it")
	}
}

// TestManyRules says that a catalog full of rules does not keep the reader busy
// for long.
func TestManyRules(t *testing.T) {
	parser := constraint.NewParser()
	for i := range 200 {
		text := fmt.Sprintf("properties.size() > %d && '%s' == ''", i, strings.Repeat("x", 10_000))
		_, _, err := parser.Parse([]constraint.Property{{Type: "olm.constraint", Value: rule(text)}})
		if err != nil {
			const want = `properties[0] of type "olm.constraint": the bundles before it have different rules of 1048576 bytes already, which is the limit; ` +
				"ask the publisher of the catalog to mend it"
			if err.Error() != want {
				t.Errorf("error %v", err)
			}
			return
		}
	}
	t.Error("no error")
}

func FuzzRule(f *testing.F) {
	for _, text := range endless() {
		f.Add(text)
	}
	f.Add("properties.exists(p, p.type == 'olm.package' && semver_compare(p.value.version, '1.2.0') == 0)")
	f.Fuzz(func(t *testing.T, text string) {
		_, requires, err := constraint.Parse([]constraint.Property{{Type: "olm.constraint", Value: rule(text)}})
		if err != nil {
			return
		}
		s := subject(t)
		if first := requires[0].MetBy(s); requires[0].MetBy(s) != first {
			t.Error("it depends on more than the operator")
		}
	})
}

func BenchmarkRule(b *testing.B) {
	c := parse(b, "olm.constraint", rule("properties.exists(p, p.type == 'olm.package' && semver_compare(p.value.version, '1.2.0') == 0)"))
	s := subject(b)
	b.ReportAllocs()
	for b.Loop() {
		if !c.MetBy(s) {
			b.Fatal("it is not met")
		}
	}
}
