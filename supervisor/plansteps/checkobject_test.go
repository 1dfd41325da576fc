package plansteps

import (
	"errors"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

func TestCheckObject(t *testing.T) {
	const (
		settings   = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`
		binding    = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"a"}}`
		definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a"}}`
		secret     = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}`
	)
	in := func(manifest, namespace string) string {
		return strings.Replace(manifest, `"name"`, `"namespace":"`+namespace+`","name"`, 1)
	}
	for _, tt := range []struct {
		reason               string
		group, version, kind string
		name, manifest       string
		namespace, err       string
	}{
		{reason: "as it says", version: "v1", kind: "ConfigMap", manifest: settings, namespace: "home"},
		{reason: "in the plan's namespace", version: "v1", kind: "ConfigMap", manifest: in(settings, "home"), namespace: "home"},
		{reason: "in another namespace", version: "v1", kind: "ConfigMap", manifest: in(settings, "other"), err: `step ConfigMap a belongs into namespace "home", its manifest into "other"`},
		{reason: "a bundle's Secret", version: "v1", kind: "BundleSecret", manifest: secret, namespace: "home"},
		{reason: "a pull secret", version: "v1", kind: "Secret", manifest: secret, namespace: "home"},
		{reason: "another name", version: "v1", kind: "ConfigMap", name: "b", manifest: settings, err: `step ConfigMap b says name "b", its manifest "a"`},
		{reason: "no name", version: "v1", kind: "ConfigMap", manifest: strings.Replace(settings, `"name"`, `"generateName"`, 1), err: `says name "a", its manifest ""`},
		{
			reason: "OLM unpacked it elsewhere", version: "v1", kind: "ConfigMap", manifest: `{"kind":"ConfigMap","name":"abc","namespace":"olm","catalogSourceName":"shop"}`,
			err: `step ConfigMap a refers to ConfigMap abc, into which OLM unpacked a bundle`,
		},
		{reason: "another group", group: "apps", version: "v1", kind: "ConfigMap", manifest: settings, err: `says group "apps", its manifest ""`},
		{reason: "another version", version: "v2", kind: "ConfigMap", manifest: settings, err: `says version "v2", its manifest "v1"`},
		{reason: "another kind", group: "rbac.authorization.k8s.io", version: "v1", kind: "ClusterRole", manifest: binding, err: `says kind "ClusterRole", its manifest "ClusterRoleBinding"`},
		{reason: "a binding that says it is a definition", group: "apiextensions.k8s.io", version: "v1", kind: "CustomResourceDefinition", manifest: binding, err: `says group "apiextensions.k8s.io", its manifest "rbac.authorization.k8s.io"`},
		{reason: "an unreadable version", version: "v1", kind: "ConfigMap", manifest: strings.Replace(settings, `"v1"`, `"a/b/c"`, 1), err: `its manifest ""`},
		{reason: "no namespace", group: "apiextensions.k8s.io", version: "v1", kind: "CustomResourceDefinition", manifest: definition},
		{reason: "a namespace too many", group: "apiextensions.k8s.io", version: "v1", kind: "CustomResourceDefinition", manifest: in(definition, "home"), err: `belongs into namespace "", its manifest into "home"`},
		{
			reason: "an old definition", group: "apiextensions.k8s.io", version: "v1beta1", kind: "CustomResourceDefinition",
			manifest: strings.Replace(definition, "/v1", "/v1beta1", 1), err: "is of apiextensions.k8s.io/v1beta1, and can only be of apiextensions.k8s.io/v1",
		},
		{
			reason: "a definition of another group", group: "x.example", version: "v1", kind: "CustomResourceDefinition",
			manifest: strings.Replace(definition, "apiextensions.k8s.io", "x.example", 1), err: "is of x.example/v1, and can only be of apiextensions.k8s.io/v1",
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
		err = CheckObject(u, step, "home")
		switch {
		case tt.err == "" && (err != nil || u.GetNamespace() != tt.namespace):
			t.Errorf("%s: namespace %q, error %v", tt.reason, u.GetNamespace(), err)
		case tt.err != "" && (!errors.Is(err, ErrManifest) || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%s: error %v, want %s", tt.reason, err, tt.err)
		}
	}
}

// TestCheckObjectNeedsAName has a step of another system without a name. The API server would generate a name, so that
// each attempt would create another object.
func TestCheckObjectNeedsAName(t *testing.T) {
	step := &operatorsv1alpha1.Step{Resource: operatorsv1alpha1.StepResource{
		Version: "v1", Kind: "ConfigMap", Manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a"}}`,
	}}
	u, _, err := Manifest(step)
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckObject(u, step, "home"); !errors.Is(err, ErrManifest) {
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
			err = CheckObject(u, step, "home")
		}
		if err != nil {
			t.Error(err)
		}
	}
}
