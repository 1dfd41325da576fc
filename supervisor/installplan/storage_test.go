package installplan

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/serving"
)

// TestHoldStorage upgrades a definition to one that is to be stored in another version.
func TestHoldStorage(t *testing.T) {
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
		holdStorage(tt.wanted, tt.live, types.NamespacedName{Namespace: "kitchen", Name: "kettle.v2"})
		if got := storageOf(tt.wanted); got != tt.storage {
			t.Errorf("%s: objects are stored in %q, want %q", name, got, tt.storage)
		}
		if got := tt.wanted.GetAnnotations()[serving.AnnotationStorage]; got != tt.noted {
			t.Errorf("%s: noted is %q, want %q", name, got, tt.noted)
		}
	}
}
