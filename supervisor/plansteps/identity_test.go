package plansteps

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

func TestName(t *testing.T) {
	id := Identity{Catalog: "olm/shop", Package: "lamp", Channel: "stable", Bundle: "lamp.v1.0.0", Content: "abc"}
	first := Name([]Identity{id}, 1)
	if first != Name([]Identity{id}, 1) || first != Name([]Identity{id}, 0) {
		t.Error("the same identity has two names")
	}
	// The names of existing plans must not change with a new release.
	if want := "install-enyrejznwt"; first != want {
		t.Errorf("name %q, want %q", first, want)
	}
	if got := Name([]Identity{id}, 2); got != first+"-2" {
		t.Errorf("second attempt %q, want %q", got, first+"-2")
	}
	for _, change := range []func(*Identity){
		func(i *Identity) { i.Catalog = "olm/other" },
		func(i *Identity) { i.Package = "other" },
		func(i *Identity) { i.Channel = "other" },
		func(i *Identity) { i.Bundle = "other" },
		func(i *Identity) { i.Replaces = "other" },
		func(i *Identity) { i.Content = "other" },
	} {
		other := id
		change(&other)
		if Name([]Identity{other}, 1) == first {
			t.Errorf("%+v has the same name as %+v", other, id)
		}
	}
}

func TestNameIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := Name([]Identity{{Package: rapid.String().Draw(t, "package"), Bundle: rapid.String().Draw(t, "bundle")}}, rapid.IntRange(0, 200).Draw(t, "attempt"))
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			t.Fatalf("%s: %v", name, problems)
		}
	})
}

func TestDigestKeepsBoundaries(t *testing.T) {
	if Digest([]string{"ab", "c"}) == Digest([]string{"a", "bc"}) {
		t.Error("two lists of manifests have one digest")
	}
}

func TestComponentLabel(t *testing.T) {
	for _, tt := range []struct{ pkg, namespace, want, reason string }{
		{pkg: "lamp", namespace: "home", want: "operators.coreos.com/lamp.home", reason: "short names stand as they are"},
		{pkg: strings.Repeat("a", 60), namespace: "home", want: "operators.coreos.com/" + strings.Repeat("a", 60) + ".ho", reason: "cut to 63"},
		{pkg: strings.Repeat("a", 62), namespace: "home", want: "operators.coreos.com/" + strings.Repeat("a", 62), reason: "no dot at the end"},
		{pkg: strings.Repeat("a", 58) + "._-", namespace: "b", want: "operators.coreos.com/" + strings.Repeat("a", 58) + "._-.b", reason: "63 exactly is left alone"},
		{pkg: strings.Repeat("a", 58) + "._-_-", namespace: "b", want: "operators.coreos.com/" + strings.Repeat("a", 58), reason: "nothing but letters and digits at the end"},
		{pkg: "Lamp Shade", namespace: "home", want: "operators.coreos.com/Lamp-Shade.home", reason: "other characters are replaced"},
		{pkg: "-lämp", namespace: "home", want: "operators.coreos.com/l-mp.home", reason: "nothing but letters and digits at the beginning"},
	} {
		got := ComponentLabel(tt.pkg, tt.namespace)
		if got != tt.want {
			t.Errorf("ComponentLabel(%s, %s) = %s, want %s: %s", tt.pkg, tt.namespace, got, tt.want, tt.reason)
		}
		if problems := validation.IsQualifiedName(got); len(problems) > 0 {
			t.Errorf("%s is no label key: %v", got, problems)
		}
	}
}

func TestScopeOf(t *testing.T) {
	for _, tt := range []struct {
		kind  schema.GroupKind
		scope Scope
		ok    bool
	}{
		{kind: schema.GroupKind{Kind: "BundleSecret"}, scope: Namespaced, ok: true},
		{kind: schema.GroupKind{Kind: "Secret"}, scope: Namespaced, ok: true},
		{kind: schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}, scope: ClusterScoped, ok: true},
		{kind: schema.GroupKind{Group: "apps", Kind: "Deployment"}},
		{kind: schema.GroupKind{Group: "example", Kind: "BundleSecret"}},
	} {
		scope, ok := Kinds(nil).ScopeOf(tt.kind)
		if ok != tt.ok || (ok && scope != tt.scope) {
			t.Errorf("ScopeOf(%s) = %v, %v", tt.kind, scope, ok)
		}
	}
}
