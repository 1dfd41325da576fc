package clusterserviceversion

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestSelectable(t *testing.T) {
	cases := map[string]struct {
		reason string
		name   string
		want   bool
	}{
		"Usual":   {"most names label what is theirs", "kettle.v1", true},
		"Longest": {"up to a length", strings.Repeat("k", 63), true},
		"TooLong": {"a longer one labels nothing, and the API server takes no such selector", strings.Repeat("k", 64), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			csv := kettle()
			csv.Name = tc.name
			for _, k := range []kind{apiServiceKind(), bindings()[0], roles()[0]} {
				if got := selectable(k.labels(csv)); got != tc.want {
					t.Errorf("%s\nselectable(%s) = %t, want %t", tc.reason, k.resource, got, tc.want)
				}
			}
			if !selectable(copies().labels(csv)) {
				t.Errorf("%s\ncopies are found by the namespace and not by the name", tc.reason)
			}
			if got := selectable(client.MatchingLabels(owned(csv))); got != tc.want {
				t.Errorf("%s\nselectable(owned) = %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
