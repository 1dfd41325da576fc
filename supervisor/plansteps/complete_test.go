package plansteps

import (
	"errors"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestCompleteObject(t *testing.T) {
	const (
		settings   = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`
		binding    = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"a"}}`
		definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a"}}`
		secret     = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}`
		budget     = `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"a"}}`
		untyped    = `{"metadata":{"name":"a"}}`
		widget     = `{"apiVersion":"shop.example/v2","kind":"Widget","metadata":{"name":"a"}}`
		sign       = `{"apiVersion":"shop.example/v2","kind":"Sign","metadata":{"name":"a","namespace":"home"}}`
	)
	kinds := Kinds{{Group: "shop.example", Kind: "Widget"}: Namespaced, {Group: "shop.example", Kind: "Sign"}: ClusterScoped, {Group: "a.example", Kind: "Gate"}: Namespaced, {Group: "b.example", Kind: "Gate"}: Namespaced}
	in := func(manifest, namespace string) string {
		return strings.Replace(manifest, `"name"`, `"namespace":"`+namespace+`","name"`, 1)
	}
	for _, tt := range []struct {
		reason               string
		group, version, kind string
		name, manifest       string
		namespace, typed     string
		err                  string
	}{
		{reason: "complete", version: "v1", kind: "ConfigMap", manifest: settings, namespace: "home", typed: "/v1 ConfigMap"},
		{reason: "in the plan's namespace", version: "v1", kind: "ConfigMap", manifest: in(settings, "home"), namespace: "home", typed: "/v1 ConfigMap"},
		{reason: "in another namespace", version: "v1", kind: "ConfigMap", manifest: in(settings, "other"), namespace: "home", typed: "/v1 ConfigMap"},
		{reason: "a bundle's Secret", version: "v1", kind: "BundleSecret", manifest: secret, namespace: "home", typed: "/v1 Secret"},
		{reason: "a pull secret", version: "v1", kind: "Secret", manifest: secret, namespace: "home", typed: "/v1 Secret"},
		{reason: "YAML", version: "v1", kind: "ConfigMap", manifest: "metadata:\n  name: a\n", namespace: "home", typed: "/v1 ConfigMap"},
		{reason: "no type", kind: "Role", manifest: untyped, namespace: "home", typed: "rbac.authorization.k8s.io/v1 Role"},
		{reason: "no type of a version", kind: "ClusterServiceVersion", manifest: untyped, namespace: "home", typed: "operators.coreos.com/v1alpha1 ClusterServiceVersion"},
		{reason: "no type of a Subscription", kind: "Subscription", manifest: untyped, namespace: "home", typed: "operators.coreos.com/v1alpha1 Subscription"},
		{reason: "a version of its own", version: "v2", kind: "ConfigMap", manifest: settings, namespace: "home", typed: "/v1 ConfigMap"},
		{reason: "no group in the step", version: "v1", kind: "PodDisruptionBudget", manifest: budget, namespace: "home", typed: "policy/v1 PodDisruptionBudget"},
		{reason: "a version only", kind: "PodDisruptionBudget", manifest: strings.Replace(budget, "policy/", "", 1), namespace: "home", typed: "policy/v1 PodDisruptionBudget"},
		{reason: "only one group has the kind", version: "v1", kind: "PodDisruptionBudget", manifest: untyped, namespace: "home", typed: "policy/v1 PodDisruptionBudget"},
		{reason: "no version", kind: "PodDisruptionBudget", manifest: untyped, err: "add apiVersion and kind to its manifest"},
		{reason: "two groups have the kind", version: "v1", kind: "Gate", manifest: untyped, err: "add apiVersion and kind to its manifest"},
		{reason: "the step has the group", group: "b.example", version: "v1", kind: "Gate", manifest: untyped, namespace: "home", typed: "b.example/v1 Gate"},
		{reason: "the version of the step has the group", version: "b.example/v1", kind: "Gate", manifest: untyped, namespace: "home", typed: "b.example/v1 Gate"},
		{reason: "an added kind", kind: "Widget", manifest: widget, namespace: "home", typed: "shop.example/v2 Widget"},
		{reason: "an added cluster-scoped kind", kind: "Sign", manifest: sign, typed: "shop.example/v2 Sign"},
		{reason: "a kind that no plan may contain", kind: "Pod", manifest: untyped, namespace: "home", typed: "/ Pod"},
		{reason: "another name", version: "v1", kind: "ConfigMap", name: "b", manifest: settings, err: `step ConfigMap b says name "b", its manifest "a"`},
		{reason: "no name", version: "v1", kind: "ConfigMap", manifest: strings.Replace(settings, `"name"`, `"generateName"`, 1), err: `says name "a", its manifest ""`},
		{
			reason: "OLM unpacked it elsewhere", version: "v1", kind: "ConfigMap", manifest: `{"kind":"ConfigMap","name":"abc","namespace":"olm","catalogSourceName":"shop"}`,
			err: `step ConfigMap a refers to ConfigMap abc, into which OLM unpacked a bundle`,
		},
		{reason: "another group", group: "apps", kind: "PodDisruptionBudget", manifest: budget, err: `says group "apps", its manifest "policy"`},
		{reason: "another kind", group: "rbac.authorization.k8s.io", version: "v1", kind: "ClusterRole", manifest: binding, err: `says kind "ClusterRole", its manifest "ClusterRoleBinding"`},
		{reason: "a binding that says it is a definition", group: "apiextensions.k8s.io", version: "v1", kind: "CustomResourceDefinition", manifest: binding, err: `says kind "CustomResourceDefinition", its manifest "ClusterRoleBinding"`},
		{reason: "an unreadable version", group: "rbac.authorization.k8s.io", kind: "Role", manifest: strings.Replace(untyped, "{", `{"apiVersion":"a/b/c",`, 1), err: `its manifest "a/b"`},
		{reason: "no namespace", group: "apiextensions.k8s.io", version: "v1", kind: "CustomResourceDefinition", manifest: definition, typed: "apiextensions.k8s.io/v1 CustomResourceDefinition"},
		{reason: "a namespace too many", kind: "CustomResourceDefinition", manifest: in(definition, "home"), typed: "apiextensions.k8s.io/v1 CustomResourceDefinition"},
		{
			reason: "the version of a definition only", version: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition",
			manifest: strings.Replace(untyped, "{", `{"apiVersion":"v1",`, 1), typed: "apiextensions.k8s.io/v1 CustomResourceDefinition",
		},
		{
			reason: "an old definition", group: "apiextensions.k8s.io", version: "v1beta1", kind: "CustomResourceDefinition",
			manifest: strings.Replace(definition, "/v1", "/v1beta1", 1), typed: "apiextensions.k8s.io/v1beta1 CustomResourceDefinition",
		},
		{
			reason: "a definition of another group", group: "x.example", version: "v1", kind: "CustomResourceDefinition",
			manifest: strings.Replace(definition, "apiextensions.k8s.io", "x.example", 1), namespace: "home", typed: "x.example/v1 CustomResourceDefinition",
		},
	} {
		if tt.name == "" {
			tt.name = "a"
		}
		step := &operatorsv1alpha1.Step{Resource: operatorsv1alpha1.StepResource{Group: tt.group, Version: tt.version, Kind: tt.kind, Name: tt.name, Manifest: tt.manifest}}
		u, _, err := Manifest(step)
		if err != nil {
			t.Fatal(err)
		}
		err = CompleteObject(u, step, "home", kinds)
		if tt.err != "" {
			if !errors.Is(err, ErrManifest) || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: error %v, want %s", tt.reason, err, tt.err)
			}
			continue
		}
		gvk := u.GroupVersionKind()
		if typed := gvk.Group + "/" + gvk.Version + " " + gvk.Kind; err != nil || u.GetNamespace() != tt.namespace || typed != tt.typed {
			t.Errorf("%s: %s in namespace %q, error %v", tt.reason, typed, u.GetNamespace(), err)
		}
	}
}

// TestCompleteObjectOwners checks the labels of objects.
func TestCompleteObjectOwners(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind, resolving string
		owned           bool
	}{
		{kind: "ConfigMap", resolving: "lamp.v1"},
		{kind: "ClusterRole", resolving: "lamp.v1", owned: true},
		{kind: "ClusterRole"},
		{kind: "CustomResourceDefinition", resolving: "lamp.v1"},
		{kind: "Subscription", resolving: "lamp.v1"},
	} {
		step := &operatorsv1alpha1.Step{Resolving: tt.resolving, Resource: operatorsv1alpha1.StepResource{Kind: tt.kind, Name: "a", Manifest: `{"metadata":{"name":"a"}}`}}
		u, _, err := Manifest(step)
		if err == nil {
			err = CompleteObject(u, step, "home", nil)
		}
		labels := u.GetLabels()
		if err != nil || labels["olm.managed"] != "true" || (labels["olm.owner"] == tt.resolving && tt.resolving != "") != tt.owned {
			t.Errorf("%s of %q: labels %v, error %v", tt.kind, tt.resolving, labels, err)
		}
	}
}

// TestCompleteObjectNeedsAName has a step of another system without a name. The API server would generate a name, so
// that each attempt would create another object.
func TestCompleteObjectNeedsAName(t *testing.T) {
	step := &operatorsv1alpha1.Step{Resource: operatorsv1alpha1.StepResource{
		Version: "v1", Kind: "ConfigMap", Manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a"}}`,
	}}
	u, _, err := Manifest(step)
	if err != nil {
		t.Fatal(err)
	}
	if err := CompleteObject(u, step, "home", nil); !errors.Is(err, ErrManifest) {
		t.Errorf("error %v, want %v", err, ErrManifest)
	}
}

// TestStepsCanBePlaced plans objects whose manifests have a namespace although their kind has none, or lack one
// although their kind has one.
func TestStepsCanBePlaced(t *testing.T) {
	role := `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"lamp","namespace":"elsewhere"}}`
	secret := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"key","namespace":"elsewhere"}}`
	definition := strings.Replace(crdManifest, `"metadata":{`, `"metadata":{"namespace":"elsewhere",`, 1)
	for _, step := range mustSteps(t, lamp(csvManifest, definition, configMapManifest, role, secret)) {
		u, _, err := Manifest(step)
		if err == nil {
			err = CompleteObject(u, step, "home", nil)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// TestKindsFlag reads the flag that adds kinds.
func TestKindsFlag(t *testing.T) {
	t.Parallel()
	var kinds Kinds
	for _, value := range []string{"shop.example/Widget", "shop.example/Sign:cluster,apps/StatefulSet"} {
		if err := kinds.Set(value); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := kinds.String(), "apps/StatefulSet,shop.example/Sign:cluster,shop.example/Widget"; got != want {
		t.Errorf("the kinds are %s, want %s", got, want)
	}
	if scope, ok := kinds.ScopeOf(schema.GroupKind{Group: "shop.example", Kind: "Sign"}); !ok || scope != ClusterScoped {
		t.Errorf("the scope of Sign is %v, %t", scope, ok)
	}
	for _, value := range []string{"", "Widget", "/Widget", "shop.example/widget", "shop.example/Widget:namespace", "Shop Example/Widget", "*/Widget"} {
		if err := kinds.Set(value); err == nil {
			t.Errorf("the value %q is accepted", value)
		}
	}
}

// TestRefusedKinds checks the errors for kinds that the flag must not add. Each names the kind and the remedy.
func TestRefusedKinds(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"shop.example/Role":                                  "may contain the kind Role only in its own group; remove it",
		"shop.example/BundleSecret":                          "the kind BundleSecret is reserved for steps of the supervisor; remove it",
		"shop.example/Subscription":                          "the kind Subscription is reserved for steps of the supervisor; remove it",
		"rbac.authorization.k8s.io/Role":                     "may always contain the kind Role, which is namespaced; remove it",
		"operators.coreos.com/ClusterServiceVersion":         "may always contain the kind ClusterServiceVersion, which is namespaced; remove it",
		"operators.coreos.com/Subscription":                  "must not contain the kind Subscription of operators.coreos.com; remove it",
		"operators.coreos.com/CatalogSource":                 "must not contain the kind CatalogSource of operators.coreos.com; remove it",
		"policy/PodDisruptionBudget:cluster":                 "may always contain the kind PodDisruptionBudget, which is namespaced; remove it",
		"scheduling.k8s.io/PriorityClass":                    "may always contain the kind PriorityClass, which is cluster-scoped; remove it",
		"shop.example/Widget,shop.example/Widget:cluster":    "names the kind Widget both as namespaced and as cluster-scoped; remove one",
		"shop.example/Policy:cluster,shop.example/Policy":    "names the kind Policy both as namespaced and as cluster-scoped; remove one",
		"shop.example/Gadget,operators.coreos.com/OLMConfig": "must not contain the kind OLMConfig of operators.coreos.com; remove it",
	} {
		var kinds Kinds
		if err := kinds.Set(value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", value, err, want)
		}
	}
	var kinds Kinds
	if err := kinds.Set("policy/PodDisruptionBudget,shop.example/Widget,shop.example/Widget"); err != nil {
		t.Error(err)
	}
}

// TestIsUnpacked checks which steps have a reference to a bundle that OLM unpacked.
func TestIsUnpacked(t *testing.T) {
	for manifest, want := range map[string]bool{
		`{"kind":"ConfigMap","name":"abc","namespace":"olm","catalogSourceName":"shop"}`:               true,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"abc"}}`:                             false,
		`{"kind":"BundleObject","package":"lamp","channel":"stable","bundle":"lamp.v1","replaces":""}`: false,
		`{`: false,
	} {
		step := &operatorsv1alpha1.Step{Resource: operatorsv1alpha1.StepResource{Kind: "ConfigMap", Name: "a", Manifest: manifest}}
		if got := IsUnpacked(step); got != want {
			t.Errorf("%s: %v, want %v", manifest, got, want)
		}
	}
}
