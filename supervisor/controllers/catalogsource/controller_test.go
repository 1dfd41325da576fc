package catalogsource

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

func TestChangedConditions(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	one := func(kind string, status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: status, Reason: reason, Message: "the cause"}}
	}
	for _, tt := range []struct {
		name          string
		before, after []metav1.Condition
		stated        bool
		want          string
	}{
		{name: "asking", after: one(api.ConditionProgressing, yes, api.ReasonAskingRegistry)},
		{name: "invalid", before: one(api.ConditionAvailable, yes, api.ReasonReplicasServe), after: one(api.ConditionAvailable, no, api.ReasonSpecInvalid)},
		{name: "serves", after: one(api.ConditionAvailable, yes, api.ReasonReplicasServe), want: "Normal ReplicasServe"},
		{name: "serves on", before: one(api.ConditionAvailable, yes, api.ReasonReplicasServe), after: one(api.ConditionAvailable, yes, api.ReasonReplicasServe)},
		{name: "does not serve yet", after: one(api.ConditionAvailable, no, api.ReasonNoReplicaServes)},
		{name: "ceases to serve", before: one(api.ConditionAvailable, yes, api.ReasonReplicasServe), after: one(api.ConditionAvailable, no, api.ReasonNoReplicaServes), want: "Warning NoReplicaServes"},
		{name: "rolls out", after: one(api.ConditionProgressing, yes, api.ReasonRollingOut), want: "Normal RollingOut"},
		{name: "has rolled out", after: one(api.ConditionProgressing, no, api.ReasonRolledOut), want: "Normal RolledOut"},
		{name: "lost one", after: one(api.ConditionProgressing, yes, api.ReasonReplicaLost), want: "Warning ReplicaLost"},
		{name: "cannot go on", after: one(api.ConditionProgressing, no, "Unschedulable"), want: "Warning Unschedulable"},
		{name: "blocked", after: one(api.ConditionProgressing, no, api.ReasonBlocked), want: "Warning Blocked"},
		{name: "told already", after: one(api.ConditionProgressing, no, "ErrImagePull"), stated: true},
		{name: "the message states another condition", after: one(api.ConditionAvailable, yes, api.ReasonReplicasServe), stated: true, want: "Normal ReplicasServe"},
	} {
		var got []string
		for _, c := range changedConditions(operatorsv1alpha1.CatalogSourceStatus{Conditions: tt.before}, operatorsv1alpha1.CatalogSourceStatus{Conditions: tt.after}, tt.stated) {
			got = append(got, eventType(c)+" "+c.Reason)
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
