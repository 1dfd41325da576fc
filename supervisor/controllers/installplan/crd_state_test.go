package installplan

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestRecordsOfPlansInProgressStay reads a definition that was installed with a version of another
// namespace.
func TestRecordsOfPlansInProgressStay(t *testing.T) {
	scheme := fixtures.Scheme(t)
	const installing = operatorsv1alpha1.InstallPlanPhaseInstalling
	other := types.NamespacedName{Namespace: "b", Name: "lamp.v1"}
	installed := func(namespace, name string) *operatorsv1alpha1.ClusterServiceVersion {
		return &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	planned := func(namespace string, phase operatorsv1alpha1.InstallPlanPhase, versions ...string) *operatorsv1alpha1.InstallPlan {
		return &operatorsv1alpha1.InstallPlan{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "install"},
			Spec:       operatorsv1alpha1.InstallPlanSpec{ClusterServiceVersionNames: versions},
			Status:     operatorsv1alpha1.InstallPlanStatus{Phase: phase},
		}
	}
	cases := map[string]struct {
		reason string
		cached []client.Object
		live   []client.Object
		stays  bool
	}{
		"Installed":    {reason: "the version exists", cached: []client.Object{installed("b", "lamp.v1")}, stays: true},
		"New":          {reason: "the cache lacks a version that exists", live: []client.Object{installed("b", "lamp.v1")}, stays: true},
		"Installing":   {reason: "its plan writes the definition before the version", cached: []client.Object{planned("b", installing, "tray.v1", "lamp.v1")}, stays: true},
		"Gone":         {reason: "no version and no plan has the definition"},
		"Complete":     {reason: "a plan that is done has created the version, which is gone", cached: []client.Object{planned("b", operatorsv1alpha1.InstallPlanPhaseComplete, "lamp.v1")}},
		"Failed":       {reason: "a plan that failed creates none", cached: []client.Object{planned("b", operatorsv1alpha1.InstallPlanPhaseFailed, "lamp.v1")}},
		"Unapproved":   {reason: "a plan that waits has written nothing", cached: []client.Object{planned("b", operatorsv1alpha1.InstallPlanPhaseRequiresApproval, "lamp.v1")}},
		"OtherVersion": {reason: "a plan for another version", cached: []client.Object{planned("b", installing, "lamp.v2")}},
		"Elsewhere":    {reason: "a plan of another namespace", cached: []client.Object{planned("c", installing, "lamp.v1")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &observer{
				namespace: "a",
				cached:    fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.cached...).Build(),
				live:      fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(tc.live, tc.cached...)...).Build(),
			}
			crd := &unstructured.Unstructured{Object: map[string]any{"kind": kindCRD}}
			setInstalledAlongside(crd, []types.NamespacedName{other})
			recorded, err := o.recorded(t.Context(), crd)
			if err != nil {
				t.Fatal(err)
			}
			kept, stale := (&crdState{live: crd, recorded: recorded}).existingVersions()
			var want []string
			if !tc.stays {
				want = []string{installedAlongsideKey(other)}
			}
			if diff := cmp.Diff(want, stale); diff != "" {
				t.Errorf("%s: records to remove -want, +got:\n%s", tc.reason, diff)
			}
			if stays := len(kept) == 1 && kept[0] == other; stays != tc.stays {
				t.Errorf("%s: records that are kept %v", tc.reason, kept)
			}
		})
	}
}

// TestJoinsIsLinear counts the allocations for a definition that many namespaces share: ten times as many
// namespaces need ten times as many, and not a hundred times.
func TestJoinsIsLinear(t *testing.T) {
	allocations := func(namespaces int) float64 {
		live := &unstructured.Unstructured{Object: map[string]any{"kind": kindCRD}}
		labels := map[string]string{}
		for i := range namespaces {
			labels[plansteps.ComponentLabel("lamp", fmt.Sprintf("n%d", i))] = ""
		}
		live.SetLabels(labels)
		live.SetAnnotations(map[string]string{"example.com/made-by": "test"})
		wanted := live.DeepCopy()
		labels[plansteps.ComponentLabel("lamp", "newest")] = ""
		wanted.SetLabels(labels)
		return testing.AllocsPerRun(1, func() {
			s := &crdState{live: live, version: types.NamespacedName{Namespace: "newest", Name: "lamp.v1"}}
			keys, err := s.missingKeys(wanted)
			if err != nil || keys == nil || len(keys.Labels) != 1 {
				t.Fatalf("missing keys %+v, error %v", keys, err)
			}
		})
	}
	const few, factor = 200, 10
	if least, most := allocations(few), allocations(few*factor); most > least*factor*1.5 {
		t.Errorf("%d namespaces need %.0f allocations, %d need %.0f", few, least, few*factor, most)
	}
}
