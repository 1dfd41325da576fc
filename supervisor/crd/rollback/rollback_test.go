package rollback_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chandlery/chandlery/supervisor/crd/rollback"
)

// definition returns a CustomResourceDefinition with versions, each "v1" or, not served, "v1-".
func definition(versions []string, stored ...string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "lamps.shop.example"
	for _, v := range versions {
		name, unserved := strings.CutSuffix(v, "-")
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: !unserved})
	}
	crd.Status.StoredVersions = stored
	return crd
}

func converted(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
	return crd
}

// lampV1 returns the bundle of an older version.
func lampV1() rollback.Bundle {
	b := rollback.Bundle{Version: &operatorsv1alpha1.ClusterServiceVersion{}}
	b.Version.Name = "lamp.v1"
	return b
}

func TestObstacles(t *testing.T) {
	v1, both := []string{"v1"}, []string{"v1", "v2"}
	for _, tt := range []struct {
		reason      string
		live, older *apiextensionsv1.CustomResourceDefinition
		converts    bool
		want        []string
	}{
		{reason: "the same versions", live: definition(both, "v1"), older: definition(both)},
		{reason: "a version goes in which nothing is stored", live: definition(both, "v1"), older: definition(v1)},
		{reason: "a stored version is there and not served", live: definition(both, "v1", "v2"), older: definition([]string{"v1-", "v2"})},
		{reason: "a stored version is missing", live: definition(both, "v1", "v2"), older: definition(v1), want: []string{"has no version v2, in which objects are stored"}},
		{reason: "a webhook converts and goes", live: converted(definition(both, "v1", "v2")), older: definition(both), want: []string{"are converted between versions by a webhook, which lamp.v1 does not have"}},
		{reason: "both have a webhook", live: converted(definition(both, "v1", "v2")), older: converted(definition(both))},
		{reason: "the older version declares the webhook", live: converted(definition(both, "v1", "v2")), older: definition(both), converts: true},
		{reason: "a webhook converts and nothing is left to convert", live: converted(definition(both, "v1")), older: definition(v1)},
		{
			reason: "all at once", live: converted(definition(both, "v2")), older: definition(v1),
			want: []string{"has no version v2", "converted between versions by a webhook"},
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			b := lampV1()
			if tt.converts {
				b.Version.Spec.WebhookDefinitions = []operatorsv1alpha1.WebhookDescription{{Type: operatorsv1alpha1.ConversionWebhook, ConversionCRDs: []string{tt.live.Name}}}
			}
			got := b.Obstacles(tt.live, tt.older)
			if len(got) != len(tt.want) {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			for i := range got {
				if !strings.Contains(got[i], tt.want[i]) {
					t.Errorf("%q does not contain %q", got[i], tt.want[i])
				}
			}
		})
	}
}

// TestConversionThatGoes checks when a version may not be withdrawn because its conversion would be lost.
func TestConversionThatGoes(t *testing.T) {
	converting := func(name string, crds ...string) *operatorsv1alpha1.ClusterServiceVersion {
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		csv.Name = name
		if len(crds) > 0 {
			csv.Spec.WebhookDefinitions = []operatorsv1alpha1.WebhookDescription{
				{Type: operatorsv1alpha1.ValidatingAdmissionWebhook}, {Type: operatorsv1alpha1.ConversionWebhook, ConversionCRDs: crds},
			}
		}
		return csv
	}
	inV2 := func(stored ...string) *apiextensionsv1.CustomResourceDefinition {
		crd := definition([]string{"v1", "v2"}, stored...)
		crd.Spec.Versions[1].Storage = true
		return crd
	}
	const lamps = "lamps.shop.example"
	want := []string{"objects of CustomResourceDefinition lamps.shop.example are stored in the versions [v1 v2] and are converted between them by the webhook of lamp.v2, which lamp.v1 does not have"}
	for _, tt := range []struct {
		reason          string
		withdrawn, back *operatorsv1alpha1.ClusterServiceVersion
		live            *apiextensionsv1.CustomResourceDefinition
		want            []string
	}{
		{reason: "a webhook converts what is stored in two versions", withdrawn: converting("lamp.v2", lamps), back: converting("lamp.v1"), live: converted(inV2("v1", "v2")), want: want},
		{reason: "it was never switched on", withdrawn: converting("lamp.v2", lamps), back: converting("lamp.v1"), live: inV2("v1", "v2")},
		{reason: "all is stored in one version", withdrawn: converting("lamp.v2", lamps), back: converting("lamp.v1"), live: converted(inV2("v2"))},
		{reason: "the older one converts too", withdrawn: converting("lamp.v2", lamps), back: converting("lamp.v1", lamps), live: converted(inV2("v1", "v2"))},
		{reason: "it is the webhook of something else", withdrawn: converting("lamp.v2"), back: converting("lamp.v1"), live: converted(inV2("v1", "v2"))},
		{reason: "there is no definition", withdrawn: converting("lamp.v2", lamps), back: converting("lamp.v1")},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			live := map[string]*apiextensionsv1.CustomResourceDefinition{lamps: tt.live}
			if diff := cmp.Diff(tt.want, rollback.Unconverted(tt.withdrawn, tt.back, live)); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

func TestVersionsThatOthersNeed(t *testing.T) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	csv.Namespace, csv.Name = "away", "lamp.v2"
	csv.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{
		{Name: "lamps.shop.example", Version: "v2"}, {Name: "fans.shop.example", Version: "v1"},
	}
	csv.Spec.CustomResourceDefinitions.Required = []operatorsv1alpha1.CRDDescription{{Name: "wires.shop.example", Version: "v3"}}
	older := definition([]string{"v1", "v2-"})
	wires := definition([]string{"v2"})
	wires.Name = "wires.shop.example"
	if got := rollback.Unserved(wires, csv); len(got) != 1 || !strings.Contains(got[0], "away/lamp.v2 needs version v3 of CustomResourceDefinition wires.shop.example") {
		t.Errorf("required and unserved: %q", got)
	}
	if got := rollback.Unserved(older, csv); len(got) != 1 || !strings.Contains(got[0], "clusterserviceversion away/lamp.v2 needs version v2") {
		t.Errorf("unserved: %q", got)
	}
	if got := rollback.Unserved(definition([]string{"v2"}), csv); got != nil {
		t.Errorf("unserved: %q", got)
	}
	live := map[string]*apiextensionsv1.CustomResourceDefinition{older.Name: older}
	if got := rollback.Missing(csv, live); len(got) != 1 || !strings.Contains(got[0], "does not serve version v2, which lamp.v2 needs") {
		t.Errorf("missing: %q", got)
	}
}

// schemaOf returns a definition with one version of a schema.
func schemaOf(t *testing.T, text string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := definition([]string{"v1"}, "v1")
	if text == "" {
		return crd
	}
	s := &apiextensionsv1.JSONSchemaProps{}
	if err := json.Unmarshal([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	crd.Spec.Versions[0].Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: s}
	return crd
}

// spec returns a schema whose spec has properties.
func spec(properties string) string {
	return fmt.Sprintf(`{"type":"object","properties":{"metadata":{"type":"object"},"spec":{"type":"object","properties":{%s}}}}`, properties)
}

func TestLost(t *testing.T) {
	const (
		bright = `"bright":{"type":"boolean"}`
		opens  = `,"x-kubernetes-preserve-unknown-fields":true`
	)
	for _, tt := range []struct {
		reason         string
		newer, older   string
		want           []string
		used, notInUse string // objects
	}{
		{reason: "the same", newer: spec(bright), older: spec(bright)},
		{reason: "the older one has more", newer: spec(""), older: spec(bright)},
		{reason: "no schemas", newer: "", older: ""},
		{reason: "a field", newer: spec(bright), older: spec(""), want: []string{"v1 spec.bright"}, used: `{"spec":{"bright":false}}`, notInUse: `{"spec":{"dim":1}}`},
		{reason: "no schema before", newer: spec(bright), older: "", want: []string{"v1 spec"}, used: `{"spec":{}}`, notInUse: `{"metadata":{}}`},
		{reason: "the older one keeps all", newer: spec(bright), older: `{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}`},
		{
			reason: "a field in each of a list", newer: spec(`"bulbs":{"type":"array","items":{"type":"object","properties":{` + bright + `}}}`),
			older: spec(`"bulbs":{"type":"array","items":{"type":"object"}}`), want: []string{"v1 spec.bulbs[].bright"},
			used: `{"spec":{"bulbs":[{},{"bright":true}]}}`, notInUse: `{"spec":{"bulbs":[{}]}}`,
		},
		{
			reason: "a field in each value of a map", newer: spec(`"rooms":{"type":"object","additionalProperties":{"type":"object","properties":{` + bright + `}}}`),
			older: spec(`"rooms":{"type":"object","additionalProperties":{"type":"object"}}`), want: []string{"v1 spec.rooms.*.bright"},
			used: `{"spec":{"rooms":{"hall":{"bright":true}}}}`, notInUse: `{"spec":{"rooms":{"hall":{}}}}`,
		},
		{
			reason: "a map where there was none", newer: spec(`"rooms":{"type":"object","additionalProperties":{"type":"string"}}`),
			older: spec(`"rooms":{"type":"object","properties":{"hall":{"type":"string"}}}`), want: []string{"v1 spec.rooms.*"},
			used: `{"spec":{"rooms":{"attic":"x"}}}`, notInUse: `{"spec":{"rooms":{"hall":"x"}}}`,
		},
		{
			reason: "a map that took anything", newer: spec(bright), older: `{"type":"object","properties":{"spec":{"type":"object","additionalProperties":true}}}`,
		},
		{
			reason: "what was kept unnamed", newer: `{"type":"object","properties":{"spec":{"type":"object"` + opens + `,"properties":{` + bright + `}}}}`, older: spec(bright),
			want: []string{"v1 spec.*"}, used: `{"spec":{"dim":1}}`, notInUse: `{"spec":{"bright":true}}`,
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			lost := lampV1().LostFields(schemaOf(t, tt.newer), schemaOf(t, tt.older))
			var got []string
			for _, f := range lost {
				got = append(got, f.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Fatalf("lost (-want +got):\n%s", diff)
			}
			for text, want := range map[string]bool{tt.used: true, tt.notInUse: false} {
				object := map[string]any{}
				if text == "" {
					continue
				}
				if err := json.Unmarshal([]byte(text), &object); err != nil {
					t.Fatal(err)
				}
				if used := slices.ContainsFunc(lost, func(f rollback.Field) bool { return f.UsedBy(object) }); used != want {
					t.Errorf("%s: used is %t", text, used)
				}
			}
		})
	}
}

// stores returns a definition with versions of the schemas, and the version in which objects are stored.
func stores(t *testing.T, version string, schemas ...string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := definition(nil)
	for i, text := range schemas {
		v := schemaOf(t, text).Spec.Versions[0]
		v.Name = fmt.Sprintf("v%d", i+1)
		v.Storage = v.Name == version
		crd.Spec.Versions = append(crd.Spec.Versions, v)
	}
	return crd
}

func TestLostInStorage(t *testing.T) {
	const bright, dim = `"bright":{"type":"boolean"}`, `"dim":{"type":"integer"}`
	declared := lampV1()
	declared.Version.Spec.WebhookDefinitions = []operatorsv1alpha1.WebhookDescription{{Type: operatorsv1alpha1.ConversionWebhook, ConversionCRDs: []string{"lamps.shop.example"}}}
	for _, tt := range []struct {
		reason      string
		bundle      rollback.Bundle
		live, older *apiextensionsv1.CustomResourceDefinition
		want        []string
	}{
		{reason: "the same storage", bundle: lampV1(), live: stores(t, "v2", spec(""), spec(bright)), older: stores(t, "v2", spec(""), spec(bright))},
		{reason: "storage that knows less", bundle: lampV1(), live: stores(t, "v2", spec(""), spec(bright)), older: stores(t, "v1", spec(""), spec(bright)), want: []string{"v2 spec.bright"}},
		{reason: "storage that knows as much", bundle: lampV1(), live: stores(t, "v2", spec(bright), spec(bright)), older: stores(t, "v1", spec(bright), spec(bright))},
		{
			reason: "a field of each version, and one that both lack, once", bundle: lampV1(),
			live: stores(t, "v2", spec(bright), spec(bright+","+dim)), older: stores(t, "v1", spec(""), spec(dim)), want: []string{"v1 spec.bright", "v2 spec.bright", "v2 spec.dim"},
		},
		{reason: "a webhook of the definition converts", bundle: lampV1(), live: stores(t, "v2", spec(""), spec(bright)), older: converted(stores(t, "v1", spec(""), spec(bright)))},
		{reason: "a webhook of the version converts", bundle: declared, live: stores(t, "v2", spec(""), spec(bright)), older: stores(t, "v1", spec(""), spec(bright))},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			var got []string
			for _, f := range tt.bundle.LostFields(tt.live, tt.older) {
				got = append(got, f.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("lost (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRead(t *testing.T) {
	b, err := rollback.Read([]string{
		`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"lamp.v1"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"}}`,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"lamps.shop.example"}}`,
	})
	if err != nil || b.Version.Name != "lamp.v1" || len(b.Definitions) != 1 || b.Definitions[0].Name != "lamps.shop.example" {
		t.Errorf("read %+v, error %v", b, err)
	}
	for _, text := range []string{"[]", `{"kind":"CustomResourceDefinition","spec":7}`} {
		if _, err := rollback.Read([]string{text}); err == nil || !strings.Contains(err.Error(), "manifest 1 of 1") {
			t.Errorf("%s: error %v", text, err)
		}
	}
}
