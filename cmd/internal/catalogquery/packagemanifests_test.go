package catalogquery

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// TestManifests searches PackageManifests.
func TestManifests(t *testing.T) {
	t.Parallel()
	item := func(name, catalog, description string) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "packages.operators.coreos.com/v1", "kind": "PackageManifest", "metadata": map[string]any{"name": name, "namespace": "shop"},
			"status": map[string]any{
				"catalogSource": catalog, "catalogSourceNamespace": "olm", "defaultChannel": "stable", "provider": map[string]any{"name": "Example"},
				"deprecation": map[string]any{"message": "use torch"},
				"channels": []any{map[string]any{"name": "beta"}, map[string]any{"name": "stable", "currentCSV": name + ".v1", "currentCSVDesc": map[string]any{
					"displayName": "The " + name, "version": "1.0.0", "description": description, "keywords": []any{"light"},
					"apiservicedefinitions": map[string]any{"owned": []any{map[string]any{"group": "wick.example.com", "version": "v1", "kind": "Flame"}}},
				}}},
			},
		}}
	}
	manifests, err := decodeManifests(&unstructured.UnstructuredList{Items: []unstructured.Unstructured{
		item("lamp", "wares", "Burns oil."), item("torch", "wares", ""), item("lamp", "spare", ""),
	}})
	if err != nil {
		t.Fatal(err)
	}
	wares := types.NamespacedName{Namespace: "olm", Name: "wares"}
	if diff := cmp.Diff([]types.NamespacedName{{Namespace: "olm", Name: "spare"}, wares}, manifests.Catalogs()); diff != "" {
		t.Errorf("catalogs (-want +got):\n%s", diff)
	}
	want := []Match{{Catalog: "olm/wares", Package: "lamp", DisplayName: "The lamp", Provider: "Example", Channel: "stable", Version: "1.0.0", Deprecation: "use torch"}}
	if diff := cmp.Diff(want, manifests.Search(wares, []string{"OIL", "light"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for words, count := range map[string]int{"": 2, "example": 2, "flame": 2, "wick.example.com": 2, "nothing": 0} {
		if got := manifests.Search(wares, []string{words}); len(got) != count {
			t.Errorf("%q finds %d, want %d", words, len(got), count)
		}
	}
}
