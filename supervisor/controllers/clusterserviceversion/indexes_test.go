package clusterserviceversion

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestStateKeys(t *testing.T) {
	lacking := []operatorsv1alpha1.RequirementStatus{{Kind: "ServiceAccount", Name: "cook", Status: operatorsv1alpha1.RequirementStatusReasonPresentNotSatisfied}}
	cases := map[string]struct {
		reason string
		status operatorsv1alpha1.ClusterServiceVersionStatus
		want   []string
	}{
		"Succeeded": {"it waits for nothing", operatorsv1alpha1.ClusterServiceVersionStatus{Phase: operatorsv1alpha1.CSVPhaseSucceeded}, nil},
		"Contending": {
			"the claims of another group decide", operatorsv1alpha1.ClusterServiceVersionStatus{
				Phase: operatorsv1alpha1.CSVPhaseFailed, Reason: operatorsv1alpha1.CSVReasonInterOperatorGroupOwnerConflict,
			}, []string{stateCompeting},
		},
		"Lacking": {
			"a binding may bring the rights", operatorsv1alpha1.ClusterServiceVersionStatus{
				Phase: operatorsv1alpha1.CSVPhasePending, RequirementStatus: lacking,
			}, []string{stateUnmet},
		},
		"LackingNoMore": {
			"the rights are from an earlier phase", operatorsv1alpha1.ClusterServiceVersionStatus{
				Phase: operatorsv1alpha1.CSVPhaseInstalling, RequirementStatus: lacking,
			}, nil,
		},
		"Refused": {
			"more rights may let it be installed", operatorsv1alpha1.ClusterServiceVersionStatus{
				Phase: operatorsv1alpha1.CSVPhaseFailed, Reason: operatorsv1alpha1.CSVReasonComponentFailed,
			}, []string{stateUnmet},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			csv := kettle()
			csv.Status = tc.status
			if diff := cmp.Diff(tc.want, stateKeys(csv)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDefinitionChanges separates changes that a version reads from those that each further version
// makes to a shared definition.
func TestDefinitionChanges(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*apiextensionsv1.CustomResourceDefinition)
		want   bool
	}{
		"Alongside": {"another version shares it", func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Annotations["operatorframework.io/installed-alongside-1"] = "b/pot.v1"
		}, false},
		"Component":   {"it is a component of another Operator", func(c *apiextensionsv1.CustomResourceDefinition) { c.Labels["operators.coreos.com/pot.b"] = "" }, false},
		"Resync":      {"nothing has changed", func(*apiextensionsv1.CustomResourceDefinition) {}, false},
		"Spec":        {"it may serve other versions", func(c *apiextensionsv1.CustomResourceDefinition) { c.Generation++ }, true},
		"Established": {"it is served", func(c *apiextensionsv1.CustomResourceDefinition) { c.Status.StoredVersions = []string{"v1"} }, true},
		"Recreated":   {"it is another one", func(c *apiextensionsv1.CustomResourceDefinition) { c.UID = "2" }, true},
		"Deleted":     {"it is being deleted", func(c *apiextensionsv1.CustomResourceDefinition) { c.DeletionTimestamp = &metav1.Time{Time: noon()} }, true},
		"Promise": {"a version holds back what it serves", func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Annotations["chandlery.dev/served-versions"] = "a/pot.v1:v2"
		}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
				Name: "cups.example.com", UID: "1", Generation: 1, Labels: map[string]string{}, Annotations: map[string]string{},
			}}
			after := before.DeepCopy()
			tc.change(after)
			e := event.TypedUpdateEvent[*apiextensionsv1.CustomResourceDefinition]{ObjectOld: before, ObjectNew: after}
			if got := definitionChanges().Update(e); got != tc.want {
				t.Errorf("%s: passes %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// TestRecordedVersions records versions on a shared definition. Only a version that the definition did not name before
// is reconciled.
func TestRecordedVersions(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	before := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		"operatorframework.io/installed-alongside-1": "a/pot.v1", "operatorframework.io/installed-alongside-2": "b/pot.v1",
	}}}
	after := before.DeepCopy()
	delete(after.Annotations, "operatorframework.io/installed-alongside-1")
	after.Annotations["operatorframework.io/installed-alongside-3"] = "c/pot.v1"
	after.Annotations["example.com/other"] = "d/pot.v1"
	recordedVersions().Update(t.Context(), event.TypedUpdateEvent[*apiextensionsv1.CustomResourceDefinition]{ObjectOld: before, ObjectNew: after}, queue)
	if queue.Len() != 1 {
		t.Fatalf("%d requests, want 1", queue.Len())
	}
	if got, _ := queue.Get(); got.String() != "c/pot.v1" {
		t.Errorf("reconciles %s, want c/pot.v1", got)
	}
}
