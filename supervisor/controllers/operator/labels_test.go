package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

func TestOperators(t *testing.T) {
	long := plansteps.ComponentLabel("a-package-with-a-name-that-is-much-too-long-for-the-key-of-a-label", "kitchen")
	for name, tt := range map[string]struct {
		labels map[string]string
		want   []string
	}{
		"none":               {},
		"others":             {labels: map[string]string{"app": "kettle", "operatorframework.io/os.linux": "supported"}},
		"one":                {labels: map[string]string{"operators.coreos.com/kettle.kitchen": "", "olm.managed": "true"}, want: []string{"kettle.kitchen"}},
		"whatever its value": {labels: map[string]string{"operators.coreos.com/kettle.kitchen": "x"}, want: []string{"kettle.kitchen"}},
		"several, in order": {
			labels: map[string]string{"operators.coreos.com/lid.kitchen": "", "operators.coreos.com/kettle.kitchen": ""},
			want:   []string{"kettle.kitchen", "lid.kitchen"},
		},
		"no name of an object": {labels: map[string]string{"operators.coreos.com/Kettle_1.kitchen": ""}},
		"cut":                  {labels: map[string]string{long: ""}, want: []string{long[len(api.PrefixComponent):]}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, operators(tt.labels)); diff != "" {
				t.Errorf("operators (-want +got):\n%s", diff)
			}
			if keys := componentKeys(tt.labels); len(keys) < len(tt.want) || len(keys) == 0 != (name == "none" || name == "others") {
				t.Errorf("component labels %v", keys)
			}
		})
	}
}
