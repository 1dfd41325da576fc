package installplan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// definitionOf returns a definition with versions from JSON and with stored versions.
func definitionOf(t *testing.T, versions string, stored ...string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd, err := typedCRD(parsed(t, `{"kind":"CustomResourceDefinition","metadata":{"name":"lamps.example"},"spec":{"versions":[`+versions+`]}}`))
	if err != nil {
		t.Fatal(err)
	}
	crd.Status.StoredVersions = stored
	return crd
}

func TestDroppedVersion(t *testing.T) {
	after := definitionOf(t, `{"name":"v1"},{"name":"v2"}`)
	for want, stored := range map[string][]string{"": {"v1", "v2"}, "v1beta1": {"v1beta1", "v1"}} {
		if got := droppedVersion(definitionOf(t, "", stored...), after); got != want {
			t.Errorf("of %v goes %q, want %q", stored, got, want)
		}
	}
}

func TestChangedVersions(t *testing.T) {
	before := definitionOf(t, `{"name":"v1","served":true,"schema":{"openAPIV3Schema":{"type":"object"}}},{"name":"v2","served":true},{"name":"v3"},{"name":"v4","served":true,"schema":{}}`)
	after := definitionOf(t, `{"name":"v1","served":true,"schema":{"openAPIV3Schema":{"type":"object"}}},{"name":"v2","served":true,"schema":{}},{"name":"v3","served":true,"schema":{}},{"name":"v4"},{"name":"v5","served":true,"schema":{}}`)
	var got []string
	for _, v := range changedVersions(before, after) {
		got = append(got, v.Name)
	}
	if diff := cmp.Diff([]string{"v2"}, got); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}

func TestProblem(t *testing.T) {
	const schema = `{"name":"v1","schema":{"openAPIV3Schema":{"type":"object","properties":{
		"apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":{"type":"object"},
		"spec":{"type":"object","required":["colour","power"],"properties":{
			"colour":{"type":"string","enum":["red","green"]},
			"power":{"type":"integer","minimum":1,"default":5},
			"port":{"x-kubernetes-int-or-string":true},
			"size":{"type":"number"},
			"parts":{"type":"array","maxItems":2,"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string","default":"a"},"since":{"type":"string","format":"date"}}}},
			"extra":{"type":"object","nullable":true,"additionalProperties":{"type":"object","required":["x"],"properties":{"x":{"type":"integer","default":1}}}},
			"any":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}}}`
	v, err := newValidator(definitionOf(t, schema).Spec.Versions[0])
	if err != nil {
		t.Fatal(err)
	}
	for spec, want := range map[string]string{
		`{"colour":"red","power":3,"port":"http","size":1,"parts":[{}],"extra":{"a":{}},"any":{"b":[1]},"unknown":1}`: "",
		`{"colour":"green","port":80,"size":1.5,"extra":null}`:                                                        "",
		`{"colour":"blue"}`:                          "spec.colour",
		`{}`:                                         "spec.colour in body is required",
		`{"colour":"red","power":0}`:                 "spec.power in body should be greater than or equal to 1",
		`{"colour":"red","power":"much"}`:            "spec.power in body must be of type integer",
		`{"colour":"red","port":true}`:               "spec.port",
		`{"colour":"red","parts":[{},{},{}]}`:        "spec.parts in body should have at most 2 items",
		`{"colour":"red","parts":[{"since":"now"}]}`: "spec.parts[0].since",
		`{"colour":"red","extra":{"a":{"x":"y"}}}`:   "spec.extra.a.x",
	} {
		object := parsed(t, `{"apiVersion":"example/v1","kind":"Lamp","metadata":{"name":"a","generation":1},"spec":`+spec+`}`)
		if got := v.problem(object.Object); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
	if v, err := newValidator(apiextensionsv1.CustomResourceDefinitionVersion{}); err != nil || v.problem(map[string]any{"a": int64(1)}) != "" {
		t.Errorf("a version without a schema: %v", err)
	}
}

func TestAlongside(t *testing.T) {
	crd := &metav1.ObjectMeta{Annotations: map[string]string{
		"other": "a/b", api.PrefixInstalledAlongside + "0": "ops/lamp.v1", api.PrefixInstalledAlongside + "1": "a/b/c", api.PrefixInstalledAlongside + "2": "nothing",
	}}
	want := []types.NamespacedName{{Namespace: "ops", Name: "lamp.v1"}}
	if diff := cmp.Diff(want, plansteps.InstalledAlongside(crd)); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	setInstalledAlongside(crd, append(want, types.NamespacedName{Namespace: "namespace-0", Name: "name-0"}, want[0]))
	// FNV-1a of 64 bits over "namespace/name", in hex, as on existing clusters.
	if diff := cmp.Diff(map[string]string{
		"other": "a/b",
		"operatorframework.io/installed-alongside-bbea80132b8559a9": "ops/lamp.v1",
		"operatorframework.io/installed-alongside-69efe9f983f66e80": "namespace-0/name-0",
	}, crd.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

func TestKeepConversion(t *testing.T) {
	const (
		nothing  = `{"strategy":"None"}`
		webhook  = `{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"name":"hook"},"caBundle":"Q0E="}}}`
		lacksCA  = `{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"name":"hook"}}}}`
		replaced = `{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"name":"other"}}}}`
	)
	for _, tt := range []struct {
		reason       string
		wanted, live string
		declared     bool
		want         string
	}{
		{reason: "the version's controller looks after it", wanted: replaced, live: nothing, declared: true, want: nothing},
		{reason: "it works", wanted: nothing, live: webhook, want: webhook},
		{reason: "it never worked", wanted: replaced, live: lacksCA, want: replaced},
		{reason: "there was none", wanted: replaced, live: nothing, want: replaced},
	} {
		object := func(conversion string) *unstructured.Unstructured {
			return parsed(t, `{"kind":"CustomResourceDefinition","metadata":{"name":"lamps.example"},"spec":{"conversion":`+conversion+`}}`)
		}
		wanted, live := object(tt.wanted), object(tt.live)
		keepConversion(wanted, live, tt.declared)
		got, _, _ := unstructured.NestedMap(wanted.Object, "spec", "conversion")
		want, _, _ := unstructured.NestedMap(object(tt.want).Object, "spec", "conversion")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}

func TestDeclaresConversion(t *testing.T) {
	csv := parsed(t, `{"spec":{"webhookdefinitions":[{"type":"ValidatingAdmissionWebhook"},{"type":"ConversionWebhook","conversionCRDs":["lamps.example"]}]}}`)
	converted := func(name string) bool { return (&crdState{name: name, csv: csv}).converted() }
	if !converted("lamps.example") || converted("trays.example") {
		t.Error("which definitions a version converts is not understood")
	}
}
