package operatorgroup

import (
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// lamps returns a ClusterServiceVersion that provides lamps.
func lamps() *operatorsv1alpha1.ClusterServiceVersion {
	csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "lamps.v1"}}
	csv.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: "lamps.shop.example", Version: "v1", Kind: "Lamp"}}
	csv.Spec.InstallModes = []operatorsv1alpha1.InstallMode{
		{Type: operatorsv1alpha1.InstallModeTypeOwnNamespace, Supported: true},
		{Type: operatorsv1alpha1.InstallModeTypeAllNamespaces, Supported: true},
	}
	return csv
}

func TestClaims(t *testing.T) {
	const lamp = "Lamp.v1.shop.example"
	known := func(name, claimed string, targets ...string) operatorsv1.OperatorGroup {
		g := group("1", targets...)
		g.Name = name
		g.Status.LastUpdated = &metav1.Time{Time: noon()}
		g.Annotations = map[string]string{operatorsv1.OperatorGroupProvidedAPIsAnnotationKey: claimed}
		return g
	}
	unknown := known("group", "", "kitchen")
	unknown.Status.LastUpdated = nil
	cases := map[string]struct {
		reason string
		group  operatorsv1.OperatorGroup
		others []operatorsv1.OperatorGroup
		want   string
	}{
		"Alone":    {"the one group of the namespace", known("group", "", "kitchen"), nil, lamp},
		"Crowded":  {"of several none takes on more", known("group", "", "kitchen"), []operatorsv1.OperatorGroup{known("other", "", "kitchen")}, ""},
		"Keeps":    {"but keeps what it has", known("group", lamp, "kitchen"), []operatorsv1.OperatorGroup{known("other", "", "kitchen")}, lamp},
		"Unknown":  {"a group whose targets are not known yet", unknown, nil, ""},
		"Unfit":    {"an operator that cannot watch what the group targets", known("group", "", "pantry"), nil, ""},
		"Distinct": {"groups of other namespaces do not count", known("group", "", "kitchen"), []operatorsv1.OperatorGroup{{ObjectMeta: metav1.ObjectMeta{Namespace: "cellar", Name: "other"}}}, lamp},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := append([]operatorsv1.OperatorGroup{tc.group}, tc.others...)
			if got := claims(&tc.group, all, []operatorsv1alpha1.ClusterServiceVersion{*lamps()}).String(); got != tc.want {
				t.Errorf("%s\nclaims(...) = %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
