package catalogsource

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/chandlery/chandlery/supervisor/api"
)

func TestRetryConflict(t *testing.T) {
	sources, errOther := schema.GroupResource{Resource: "catalogsources"}, errors.New("other")
	for _, tt := range []struct {
		reason string
		err    error
		want   ctrl.Result
		fails  bool
	}{
		{reason: "written meanwhile", err: apierrors.NewConflict(sources, "shop", errOther), want: ctrl.Result{RequeueAfter: conflictDelay}},
		{reason: "deleted meanwhile", err: apierrors.NewNotFound(sources, "shop")},
		{reason: "anything else", err: errOther, fails: true},
	} {
		got, err := retryConflict(fmt.Errorf("writing: %w", tt.err))
		if got != tt.want || (err != nil) != tt.fails {
			t.Errorf("%s: %+v, %v", tt.reason, got, err)
		}
	}
}

func TestNews(t *testing.T) {
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
		for _, c := range newsOf(operatorsv1alpha1.CatalogSourceStatus{Conditions: tt.before}, operatorsv1alpha1.CatalogSourceStatus{Conditions: tt.after}, tt.stated) {
			got = append(got, levelOf(c)+" "+c.Reason)
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
