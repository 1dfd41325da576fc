package operator

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func noon() *metav1.Time {
	return new(metav1.NewTime(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)))
}

func one() *metav1.Time { return new(metav1.NewTime(noon().Add(time.Hour))) }

func TestConditions(t *testing.T) {
	shown := func(kind string, updated *metav1.Time) []operatorsv1.Condition {
		return []operatorsv1.Condition{{
			Type: operatorsv1.ConditionType(kind), Status: corev1.ConditionTrue, Reason: "Boiling", Message: "hot",
			LastUpdateTime: updated, LastTransitionTime: noon(),
		}}
	}
	for name, tt := range map[string]struct {
		object client.Object
		want   []operatorsv1.Condition
	}{
		"a Role has none": {object: &rbacv1.Role{}},
		"a Deployment": {
			object: &appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{
				Type: "Available", Status: corev1.ConditionTrue, Reason: "Boiling", Message: "hot", LastUpdateTime: *one(), LastTransitionTime: *noon(),
			}}}},
			want: shown("Available", one()),
		},
		"a Subscription, without its heartbeat": {
			object: &operatorsv1alpha1.Subscription{Status: operatorsv1alpha1.SubscriptionStatus{Conditions: []operatorsv1alpha1.SubscriptionCondition{{
				Type: "CatalogSourcesUnhealthy", Status: corev1.ConditionTrue, Reason: "Boiling", Message: "hot",
				LastHeartbeatTime: one(), LastTransitionTime: noon(),
			}}}},
			want: shown("CatalogSourcesUnhealthy", nil),
		},
		"an InstallPlan": {
			object: &operatorsv1alpha1.InstallPlan{Status: operatorsv1alpha1.InstallPlanStatus{Conditions: []operatorsv1alpha1.InstallPlanCondition{{
				Type: "Installed", Status: corev1.ConditionTrue, Reason: "Boiling", Message: "hot", LastUpdateTime: one(), LastTransitionTime: noon(),
			}}}},
			want: shown("Installed", one()),
		},
		"a version, by its phase and not its history": {
			object: &operatorsv1alpha1.ClusterServiceVersion{Status: operatorsv1alpha1.ClusterServiceVersionStatus{
				Phase: operatorsv1alpha1.CSVPhaseSucceeded, Reason: "Boiling", Message: "hot", LastUpdateTime: one(), LastTransitionTime: noon(),
				Conditions: []operatorsv1alpha1.ClusterServiceVersionCondition{{Phase: operatorsv1alpha1.CSVPhasePending}},
			}},
			want: shown("Succeeded", one()),
		},
		"a version without a phase": {object: &operatorsv1alpha1.ClusterServiceVersion{}},
		"an OperatorCondition": {
			object: &operatorsv2.OperatorCondition{Status: operatorsv2.OperatorConditionStatus{Conditions: []metav1.Condition{{
				Type: "Upgradeable", Status: metav1.ConditionTrue, Reason: "Boiling", Message: "hot", LastTransitionTime: *noon(),
			}}}},
			want: shown("Upgradeable", nil),
		},
		"without a status it is none": {
			object: &operatorsv1alpha1.InstallPlan{Status: operatorsv1alpha1.InstallPlanStatus{Conditions: []operatorsv1alpha1.InstallPlanCondition{{Type: "Installed"}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, conditionsOf(tt.object)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConditionsOfUnknownKinds(t *testing.T) {
	for name, tt := range map[string]struct {
		status any
		want   []operatorsv1.Condition
	}{
		"no status":      {},
		"no conditions":  {status: map[string]any{"phase": "Active"}},
		"of other forms": {status: map[string]any{"conditions": []any{"hot"}}},
		"conditions": {
			status: map[string]any{"conditions": []any{
				map[string]any{
					"type": "Established", "status": "True", "reason": "InitialNamesAccepted", "message": "fine",
					"lastTransitionTime": "2026-08-01T12:00:00Z",
				},
				map[string]any{"type": "NonStructuralSchema"},
			}},
			want: []operatorsv1.Condition{{
				Type: "Established", Status: corev1.ConditionTrue, Reason: "InitialNamesAccepted", Message: "fine", LastTransitionTime: noon(),
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "x/v1", "kind": "X"}}
			if tt.status != nil {
				u.Object["status"] = tt.status
			}
			if diff := cmp.Diff(tt.want, unstructuredConditions(u)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func ref(apiVersion, kind, namespace, name string) operatorsv1.RichReference {
	return operatorsv1.RichReference{ObjectReference: &corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}}
}

func TestComponentsAreInOrder(t *testing.T) {
	want := []operatorsv1.RichReference{
		ref("apps/v1", "Deployment", "kitchen", "kettle"),
		ref("v1", "Secret", "kitchen", "a"), ref("v1", "Secret", "kitchen", "b"), ref("v1", "Secret", "pantry", "a"),
	}
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}} {
		var refs []operatorsv1.RichReference
		for _, i := range order {
			refs = append(refs, want[i])
		}
		if diff := cmp.Diff(want, components("operators.coreos.com/kettle.kitchen", refs).Refs); diff != "" {
			t.Errorf("in the order %v (-want +got):\n%s", order, diff)
		}
	}
}

func TestDecide(t *testing.T) {
	const key = "operators.coreos.com/kettle.kitchen"
	some := []operatorsv1.RichReference{ref("v1", "Secret", "kitchen", "a")}
	of := func(refs []operatorsv1.RichReference) *operatorsv1.Operator {
		return &operatorsv1.Operator{Status: operatorsv1.OperatorStatus{Components: components(key, refs)}}
	}
	going := of(some)
	going.DeletionTimestamp = noon()
	changed := []operatorsv1.RichReference{ref("v1", "Secret", "kitchen", "a")}
	changed[0].Conditions = []operatorsv1.Condition{{Type: "Hot", Status: corev1.ConditionTrue}}
	for name, tt := range map[string]struct {
		have *operatorsv1.Operator
		refs []operatorsv1.RichReference
		want action
	}{
		"no Operator, no components":                  {want: actionNone},
		"the first component":                         {refs: some, want: actionCreate},
		"as it is":                                    {have: of(some), refs: some, want: actionNone},
		"another condition":                           {have: of(some), refs: changed, want: actionUpdateStatus},
		"one component less":                          {have: of(append(some, ref("v1", "Secret", "kitchen", "b"))), refs: some, want: actionUpdateStatus},
		"the last component is gone":                  {have: of(some), want: actionDelete},
		"made by hand, not observedConditions at yet": {have: &operatorsv1.Operator{}, want: actionUpdateStatus},
		"created by a user, without components":       {have: of(nil), want: actionNone},
		"being deleted":                               {have: going, want: actionNone},
		"being deleted, with components":              {have: going, refs: changed, want: actionNone},
	} {
		t.Run(name, func(t *testing.T) {
			got, want := decide(tt.have, key, tt.refs)
			if got != tt.want {
				t.Errorf("decided %s, want %s", got, tt.want)
			}
			if got == actionCreate || got == actionUpdateStatus {
				after := &operatorsv1.Operator{Status: want}
				if again, _ := decide(after, key, tt.refs); again != actionNone {
					t.Errorf("after %s it is decided to %s", got, again)
				}
			}
		})
	}
}
