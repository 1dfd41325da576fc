package webhook

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// TestIsOfOperator has versions with which a definition was installed, beside one that declares to
// convert it.
func TestIsOfOperator(t *testing.T) {
	version := func(namespace, name, pkg string) *operatorsv1alpha1.ClusterServiceVersion {
		csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if pkg != "" {
			csv.Annotations = map[string]string{
				api.AnnotationProperties: `{"properties":[{"type":"olm.package","value":{"packageName":"` + pkg + `","version":"1.0.0"}}]}`,
			}
		}
		return csv
	}
	labelled := version("b", "other.v1", "")
	labelled.Labels = map[string]string{plansteps.ComponentLabel("kettle", "b"): ""}
	cases := map[string]struct {
		reason string
		pkg    string // of the version that converts
		other  *operatorsv1alpha1.ClusterServiceVersion
		want   bool
	}{
		"Itself":           {"it is the same version", "kettle", version("a", "kettle.v2", "kettle"), true},
		"Package":          {"it is of the package, in another namespace", "kettle", version("b", "kettle.v1", "kettle"), true},
		"Label":            {"its label says so", "kettle", labelled, true},
		"Replaced":         {"it is replaced, and says no package", "kettle", version("a", "kettle.v1", ""), true},
		"ReplacedForeign":  {"what a bundle replaces does not count against the package of another", "kettle", version("a", "kettle.v1", "pot"), false},
		"ReplacedUnstated": {"nor for a version that says no package", "", version("a", "kettle.v1", "pot"), false},
		"ReplacedAway":     {"a version of another namespace is not replaced", "kettle", version("b", "kettle.v1", ""), false},
		"Other":            {"it is of another package", "kettle", version("a", "pot.v1", "pot"), false},
		"Unstated":         {"two that say no package have nothing in common", "", version("a", "pot.v1", ""), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &State{version: Version{CSV: version("a", "kettle.v2", tc.pkg)}, owners: webhook.OwnerCheck{Predecessors: []string{"kettle.v1"}}}
			if got := s.isOfOperator(tc.other); got != tc.want {
				t.Errorf("%s: isOfOperator() = %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// TestConverts has a definition that converts through a Service. The version kitchen/kettle.v1 has the
// Service kettle-service.
func TestConverts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		service *types.NamespacedName
		want    bool
	}{
		"Own":       {"it is the Service of the version", &types.NamespacedName{Namespace: "kitchen", Name: "kettle-service"}, true},
		"Other":     {"it is another Service of the namespace", &types.NamespacedName{Namespace: "kitchen", Name: "pot-service"}, false},
		"Elsewhere": {"it is a Service of that name in another namespace", &types.NamespacedName{Namespace: "pantry", Name: "kettle-service"}, false},
		"None":      {"it does not convert through a Service", nil, false},
	} {
		if got := hookedState(t).converts(tc.service); got != tc.want {
			t.Errorf("%s: %s: %t, want %t", name, tc.reason, got, tc.want)
		}
	}
}
