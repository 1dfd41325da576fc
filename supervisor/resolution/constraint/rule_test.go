package constraint_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
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

// large returns an operator that has many properties.
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

// endless returns rules that would take years, or all memory, without limits.
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
		// The limits count steps; this finds operations that are not counted.
		if took > 10*time.Second {
			t.Errorf("%.60s took %s", text, took)
		}
	}
}

// TestBudget checks that an endless rule does not block queries over a whole catalog. After some operators the
// rule is not evaluated any more. Other owners are not affected.
func TestBudget(t *testing.T) {
	requires := func(texts ...string) []constraint.Constraint {
		var properties []constraint.Property
		for _, text := range texts {
			properties = append(properties, constraint.Property{Type: "olm.constraint", Value: rule(text)})
		}
		_, requires, err := constraint.Parse(append(properties, constraint.Property{Type: "olm.label.required", Value: `{"label":"blue"}`}))
		if err != nil {
			t.Fatal(err)
		}
		return requires
	}
	own, others := requires(endless()[0], "true"), requires("true")
	var budget constraint.Budget
	small := subject(t)
	if budget.Evaluate(&own[1], small) != constraint.Met || budget.CutOff(&own[1]) {
		t.Error("a rule is not met before anything has been spent")
	}
	base := large(t)
	for range 1000 {
		s := *base
		if budget.Evaluate(&own[0], &s) != constraint.CutOff {
			t.Fatal("it is not cut off")
		}
	}
	another := *small
	if budget.Evaluate(&own[1], &another) != constraint.CutOff || !budget.CutOff(&own[0]) || !budget.CutOff(&own[1]) {
		t.Error("a rule is evaluated although too much has been spent")
	}
	if budget.Evaluate(&own[2], &another) != constraint.Met {
		t.Error("what takes nothing is cut off too")
	}
	if budget.Evaluate(&others[0], &another) != constraint.Met || budget.CutOff(&others[0]) {
		t.Error("another owner suffers")
	}
}

// TestCutOff checks that a constraint that was cut off is not met, in any combination. A cut-off must not
// matter if it does not decide.
func TestCutOff(t *testing.T) {
	slow := rule(endless()[0])
	list := func(operator string, members ...string) string {
		return `{"` + operator + `":{"constraints":[` + strings.Join(members, ",") + `]}}`
	}
	yes, no := rule("true"), rule("false")
	for value, want := range map[string]constraint.Verdict{
		slow:                              constraint.CutOff,
		list("not", slow):                 constraint.CutOff,
		list("not", slow, yes):            constraint.Unmet,
		list("not", list("not", slow)):    constraint.CutOff,
		list("any", slow, no):             constraint.CutOff,
		list("any", slow, yes):            constraint.Met,
		list("all", slow, yes):            constraint.CutOff,
		list("all", slow, no):             constraint.Unmet,
		list("all", list("not", no), yes): constraint.Met,
	} {
		c := parse(t, "olm.constraint", value)
		var budget constraint.Budget
		s := large(t)
		if got := budget.Evaluate(&c, s); got != want {
			t.Errorf("%s: %d, want %d", value, got, want)
		}
		if got := c.MetBy(s); got != (want == constraint.Met) {
			t.Errorf("%s met: %v", value, got)
		}
	}
}

// TestPropertiesInCommon checks that properties of many operators are decoded once, and that the properties of
// each are counted.
func TestPropertiesInCommon(t *testing.T) {
	heavy := func(text string) []constraint.Property {
		var properties []constraint.Property
		for i := range 14 {
			value := "[" + strings.TrimSuffix(strings.Repeat(`{"a":"`+text+`"},`, 300), ",") + "]"
			properties = append(properties, constraint.Property{Type: fmt.Sprintf("t%d", i), Value: value})
		}
		return properties
	}
	common := heavy("common")
	for name, test := range map[string]struct {
		properties func(i int) []constraint.Property
		want       constraint.Verdict
	}{
		"in common": {func(int) []constraint.Property { return common }, constraint.Unmet},
		"their own": {func(i int) []constraint.Property { return heavy(strconv.Itoa(i)) }, constraint.CutOff},
	} {
		t.Run(name, func(t *testing.T) {
			c := parse(t, "olm.constraint", rule("size(properties) == 77"))
			var budget constraint.Budget
			last := constraint.Unmet
			for i := 0; i < 300 && last == constraint.Unmet; i++ {
				last = budget.Evaluate(&c, &constraint.Subject{Properties: test.properties(i)})
			}
			if last != test.want {
				t.Errorf("verdict %d, want %d", last, test.want)
			}
		})
	}
}

// TestLargeProperties checks that properties that exceed the limits meet no rule.
func TestLargeProperties(t *testing.T) {
	c := parse(t, "olm.constraint", rule("size(properties) == 1"))
	for value, want := range map[string]bool{
		"[" + strings.Repeat("{},", 5_000) + "{}]":                           true,
		"[" + strings.Repeat("{},", 15_000) + "{}]":                          false,
		`"` + strings.Repeat(`{,[\"`, 40_000) + `"`:                          true,
		`"` + strings.Repeat("x", 300_000) + `"`:                             false,
		"[" + strings.Repeat(`"`+strings.Repeat(",", 50)+`",`, 3_000) + "1]": true,
	} {
		if got := c.MetBy(&constraint.Subject{Properties: []constraint.Property{{Type: "made.up", Value: value}}}); got != want {
			t.Errorf("%.30s of %d bytes: met %v, want %v", value, len(value), got, want)
		}
	}
}

// TestManyRules checks that the rules of a bundle and of a catalog are bounded in time and memory.
func TestManyRules(t *testing.T) {
	short := func(i int) string { return fmt.Sprintf("1 < %d", i) }
	long := func(i int) string { return fmt.Sprintf("'%d' != '%s'", i, strings.Repeat("x", 1000)) }
	const (
		ofBundle  = "the bundle has too many rules: the limit is 32, and 16384 bytes of text"
		ofCatalog = "the bundles before it in the catalog reach the limit of 1000 different rules and 262144 bytes of text"
	)
	for name, test := range map[string]struct {
		rule      func(int) string
		bundles   int
		rules     int // of each bundle
		wantError string
		wantIndex int // of the first bundle that has it
	}{
		"what a bundle may have":         {short, 1, 32, "", 0},
		"too many":                       {short, 1, 33, ofBundle, 0},
		"too much text":                  {long, 1, 17, ofBundle, 0},
		"too many of all bundles":        {short, 40, 32, ofCatalog, 31},
		"too much text of all bundles":   {long, 60, 5, ofCatalog, 51},
		"the same rules in each of them": {func(i int) string { return short(i % 32) }, 100, 32, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			parser := constraint.NewParser()
			for bundle := range test.bundles {
				var properties []constraint.Property
				for i := range test.rules {
					properties = append(properties, constraint.Property{Type: "olm.constraint", Value: rule(test.rule(bundle*test.rules + i))})
				}
				_, _, err := parser.Parse(properties)
				if err == nil {
					continue
				}
				if test.wantError == "" || bundle != test.wantIndex || !strings.Contains(err.Error(), test.wantError) {
					t.Errorf("bundle %d: %v", bundle, err)
				}
				return
			}
			if test.wantError != "" {
				t.Error("no error")
			}
		})
	}
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
