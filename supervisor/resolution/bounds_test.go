package resolution

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
)

func needsRule(text string) bundles.Property {
	return property(bundles.TypeConstraint, fmt.Sprintf(`{"cel":{"rule":%q}}`, text))
}

// TestResolveRulesThatTakeTooLong checks that a package with slow rules gets an error, and that others are not
// affected, whatever the order.
func TestResolveRulesThatTakeTooLong(t *testing.T) {
	var slow []bundles.Property
	for i := range 4 {
		slow = append(slow, needsRule(fmt.Sprintf("properties.all(a, properties.all(b, properties.all(c, a.type + b.type != c.type + '%d'))) && %d < 0", i, i)))
	}
	packages := []*bundles.Package{
		chain("evil", slow, slow[1:]),
		chain("good", properties(needsRule("properties.exists(p, p.type == 'olm.package' && p.value.packageName == 'p399')"))),
	}
	for i := range 400 {
		var extra []bundles.Property
		for j := range 20 {
			extra = append(extra, property(fmt.Sprintf("t%d", j), `{}`))
		}
		packages = append(packages, chain(fmt.Sprintf("p%d", i), extra))
	}
	p := problem(want("evil"), want("good"))
	p.Catalogs = map[CatalogKey]Catalog{shop: {Content: offering(packages...)}}
	s := Resolve(t.Context(), p)
	const text = "property olm.constraint of evil.v2.0.0 takes too long to evaluate"
	if err := s["my-evil"].Err; err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want %s", err, text)
	}
	if diff := cmp.Diff("good.v1.0.0 +p399.v1.0.0", brief(s)["my-good"]); diff != "" {
		t.Errorf("another Subscription (-want +got):\n%s", diff)
	}
}

// TestSelection checks that an entry is visited once, however often a constraint names it.
func TestSelection(t *testing.T) {
	catalog := offering(
		chain("a", properties(provides("A"), provides("B"), property("olm.label", `{"label":"blue"}`))),
		chain("b", properties(provides("B"))),
		chain("c", nil),
	)
	gvk := func(kind string) string {
		return fmt.Sprintf(`{"gvk":{"group":"g.example","version":"v1","kind":%q}}`, kind)
	}
	pkg := func(name string) string {
		return fmt.Sprintf(`{"package":{"packageName":%q,"versionRange":">=1.0.0"}}`, name)
	}
	list := func(operator string, members ...string) string {
		return `{"` + operator + `":{"constraints":[` + strings.Join(members, ",") + `]}}`
	}
	rule := `{"cel":{"rule":"true"}}`
	for value, want := range map[string]string{
		gvk("B"): "a.v1.0.0 b.v1.0.0",
		list("any", gvk("A"), gvk("A"), gvk("B"), pkg("b"), pkg("a"), pkg("b")): "a.v1.0.0 b.v1.0.0",
		list("any", pkg("c"), list("any", gvk("A"), pkg("missing"))):            "c.v1.0.0 a.v1.0.0",
		list("any", pkg("c"), rule):                                             "a.v1.0.0 b.v1.0.0 c.v1.0.0",
		list("all", rule, list("not", pkg("a")), pkg("c"), pkg("a")):            "c.v1.0.0",
		list("not", pkg("a")):                                                   "a.v1.0.0 b.v1.0.0 c.v1.0.0",
	} {
		_, requires, err := constraint.Parse([]constraint.Property{{Type: bundles.TypeConstraint, Value: value}})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entriesForConstraint(catalog, &requires[0]) {
			names = append(names, e.Bundle.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
}
