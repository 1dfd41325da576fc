package operator

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// times is a queue that records when requests become due.
type times struct {
	queue

	clock clock.PassiveClock
	due   map[time.Time]int
}

func (q times) AddAfter(_ reconcile.Request, pause time.Duration) { q.due[q.clock.Now().Add(pause)]++ }

// TestPause has events of a component and of the Operator during a slow installation. All events between
// two writes of the status must be due at once, so that they need one reconciliation.
func TestPause(t *testing.T) {
	now := testclock.NewFakePassiveClock(noon().Time)
	r := &reconciler{clock: now}
	r.starts.Store("kettle.kitchen", now.Now())
	q := times{clock: now, due: map[time.Time]int{}}
	components := enqueueOperators(r.delay, componentOf, componentEvents{versionKind()}.affected)
	operators := enqueueOperators(r.delay, nameOf, changedOperator)
	before, after := version(map[string]string{kettle: ""}), version(map[string]string{kettle: ""})
	after.Status.Phase = operatorsv1alpha1.CSVPhaseInstalling
	shown := &operatorsv1.Operator{ObjectMeta: metav1.ObjectMeta{Name: "kettle.kitchen"}}
	shown.Status.Components = &operatorsv1.Components{}
	for range 4 {
		now.SetTime(now.Now().Add(250 * time.Millisecond))
		components.Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
		operators.Update(t.Context(), event.UpdateEvent{ObjectOld: &operatorsv1.Operator{}, ObjectNew: shown}, q)
		operators.Update(t.Context(), event.UpdateEvent{ObjectOld: shown, ObjectNew: shown}, q)
	}
	if diff := cmp.Diff(map[time.Time]int{noon().Add(minStatusInterval): 8}, q.due); diff != "" {
		t.Errorf("due (-want +got):\n%s", diff)
	}
}

// TestAffected changes a component of many Operators.
func TestAffected(t *testing.T) {
	shared := func(change func(*apiextensionsv1.CustomResourceDefinition)) client.Object {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
			Name: "cups.example.com", UID: "1", Labels: map[string]string{"operators.coreos.com/kettle.a": "", "operators.coreos.com/kettle.b": ""},
		}}
		change(crd)
		return crd
	}
	same := func(*apiextensionsv1.CustomResourceDefinition) {}
	cases := map[string]struct {
		reason string
		change func(*apiextensionsv1.CustomResourceDefinition)
		want   []string
	}{
		"Annotated": {"no status shows annotations", func(c *apiextensionsv1.CustomResourceDefinition) { c.ResourceVersion = "2" }, nil},
		"Joined":    {"it is a component of one more", func(c *apiextensionsv1.CustomResourceDefinition) { c.Labels["operators.coreos.com/kettle.c"] = "" }, []string{"kettle.c"}},
		"Left":      {"it is a component of one less", func(c *apiextensionsv1.CustomResourceDefinition) { delete(c.Labels, "operators.coreos.com/kettle.a") }, []string{"kettle.a"}},
		"Established": {"all show its conditions", func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
		}, []string{"kettle.a", "kettle.b"}},
		"Recreated": {"it is another one", func(c *apiextensionsv1.CustomResourceDefinition) { c.UID = "2" }, []string{"kettle.a", "kettle.b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := componentEvents{crdKind()}.affected(shared(same), shared(tc.change))
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAffectedByMetadata changes a component that is cached as metadata. Its conditions may have
// changed.
func TestAffectedByMetadata(t *testing.T) {
	before := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "1", ResourceVersion: "1", Labels: map[string]string{"operators.coreos.com/kettle.a": ""}}}
	after := before.DeepCopy()
	after.ResourceVersion = "2"
	if got := (componentEvents{kind{conditions: true}}).affected(before, after); len(got) != 1 {
		t.Errorf("with conditions %v are affected, want one", got)
	}
	if got := (componentEvents{kind{}}).affected(before, after); len(got) != 0 {
		t.Errorf("without conditions %v are affected, want none", got)
	}
}

func TestOwnerKeys(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
		"olm.owner": "kettle.v1", "olm.owner.namespace": "a", "olm.owner.kind": "ClusterServiceVersion",
	}}}
	if diff := cmp.Diff([]string{"a/kettle.v1"}, ownerKeys(role)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	role.Labels["olm.owner.kind"] = "OperatorGroup"
	if got := ownerKeys(role); got != nil {
		t.Errorf("a role of an OperatorGroup is indexed as %v", got)
	}
}
