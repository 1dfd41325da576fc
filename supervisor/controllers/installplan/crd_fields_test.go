package installplan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
)

// TestDeferStorage upgrades a definition to one with another storage version.
func TestDeferStorage(t *testing.T) {
	define := func(storage string, versions ...string) *unstructured.Unstructured {
		var list []any
		for _, v := range versions {
			list = append(list, map[string]any{"name": v, "served": true, "storage": v == storage})
		}
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"versions": list}}}
	}
	for name, tt := range map[string]struct {
		live, wanted *unstructured.Unstructured
		storage      string
		noted        string
	}{
		"the same":              {live: define("v1", "v1"), wanted: define("v1", "v1", "v2"), storage: "v1"},
		"another":               {live: define("v1", "v1"), wanted: define("v2", "v1", "v2"), storage: "v1", noted: "kitchen/kettle.v2:v2"},
		"back to an older one":  {live: define("v2", "v1", "v2"), wanted: define("v1", "v1", "v2"), storage: "v2", noted: "kitchen/kettle.v2:v1"},
		"the old one goes":      {live: define("v1", "v1"), wanted: define("v2", "v2"), storage: "v2"},
		"nothing is stored yet": {live: define("", "v1"), wanted: define("v2", "v1", "v2"), storage: "v2"},
	} {
		deferStorage(tt.wanted, tt.live, types.NamespacedName{Namespace: "kitchen", Name: "kettle.v2"})
		if got := storageOf(tt.wanted); got != tt.storage {
			t.Errorf("%s: objects are stored in %q, want %q", name, got, tt.storage)
		}
		if got := tt.wanted.GetAnnotations()[api.AnnotationStorageVersion]; got != tt.noted {
			t.Errorf("%s: noted is %q, want %q", name, got, tt.noted)
		}
	}
}

// TestDeferServed installs definitions with versions that need a webhook.
func TestDeferServed(t *testing.T) {
	const first, second = `{"name":"v1","served":true,"storage":true}`, `{"name":"v2","served":true}`
	for name, tt := range map[string]struct {
		live, wanted string
		converted    bool
		noted        string
		served       []string
	}{
		"new":               {wanted: first + "," + second, noted: "kitchen/kettle.v2:v2", served: []string{"v1"}},
		"new, one version":  {wanted: first, served: []string{"v1"}},
		"one more":          {live: first, wanted: first + "," + second, noted: "kitchen/kettle.v2:v2", served: []string{"v1"}},
		"none more":         {live: first + "," + second, wanted: first + "," + second, served: []string{"v1", "v2"}},
		"one less":          {live: first + "," + second, wanted: first, served: []string{"v1"}},
		"converted already": {live: first, wanted: first + "," + second, converted: true, served: []string{"v1", "v2"}},
	} {
		strategy := `"strategy":"None"`
		if tt.converted {
			strategy = `"strategy":"Webhook"`
		}
		define := func(versions string) *unstructured.Unstructured {
			return parsed(t, `{"kind":"CustomResourceDefinition","spec":{"conversion":{`+strategy+`},"versions":[`+versions+`]}}`)
		}
		var live *unstructured.Unstructured
		if tt.live != "" {
			live = define(tt.live)
		}
		wanted := define(tt.wanted)
		deferServed(wanted, live, types.NamespacedName{Namespace: "kitchen", Name: "kettle.v2"})
		if got := wanted.GetAnnotations()[api.AnnotationServedVersions]; got != tt.noted {
			t.Errorf("%s: noted is %q, want %q", name, got, tt.noted)
		}
		if diff := cmp.Diff(tt.served, servedIn(wanted)); diff != "" {
			t.Errorf("%s: served (-want +got):\n%s", name, diff)
		}
	}
}

// TestDeferConversion upgrades a definition to one that the operator's webhook converts.
func TestDeferConversion(t *testing.T) {
	const first, second, off = `{"name":"v1","served":true}`, `{"name":"v2","served":true}`, `{"name":"v2","served":false}`
	define := func(strategy, versions string) *unstructured.Unstructured {
		return parsed(t, `{"kind":"CustomResourceDefinition","spec":{"conversion":{`+strategy+`},"versions":[`+versions+`]}}`)
	}
	for name, tt := range map[string]struct {
		strategy     string
		live, wanted string
		noted        string
	}{
		"one version":                  {live: first, wanted: first, noted: "kitchen/kettle.v2"},
		"both were served":             {strategy: `"strategy":"None"`, live: first + "," + second, wanted: second + "," + first, noted: "kitchen/kettle.v2"},
		"one is served no more":        {live: first + "," + second, wanted: first, noted: "kitchen/kettle.v2"},
		"one is new":                   {live: first, wanted: first + "," + second},
		"one was not served":           {live: first + "," + off, wanted: first + "," + second},
		"one exists and is not served": {live: first, wanted: first + "," + off, noted: "kitchen/kettle.v2"},
		"converted before":             {strategy: `"strategy":"Webhook"`, live: first, wanted: first},
	} {
		wanted := define(`"strategy":"Webhook"`, tt.wanted)
		deferConversion(wanted, define(tt.strategy, tt.live), types.NamespacedName{Namespace: "kitchen", Name: "kettle.v2"})
		if got := wanted.GetAnnotations()[api.AnnotationConversion]; got != tt.noted {
			t.Errorf("%s: noted is %q, want %q", name, got, tt.noted)
		}
	}
}
