package migration

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// TestCountDescribe checks the text about the objects of a kind.
func TestCountDescribe(t *testing.T) {
	t.Parallel()
	plans := func(installing int) Count {
		return Count{Kind: "InstallPlan", Total: 2 + installing, By: map[string]int{"Complete": 2, "Installing": installing}, Unfinished: installing}
	}
	for _, tt := range []struct {
		count Count
		want  string
	}{
		{Count{Kind: "OperatorGroup", Total: 1}, "1 OperatorGroup"},
		{Count{Kind: "ClusterServiceVersion", Total: 3, By: map[string]int{"Succeeded": 2, "copied": 1}}, "3 ClusterServiceVersions (2 Succeeded, 1 copied)"},
		{plans(1), "2 InstallPlans (2 Complete); 1 more, which is in progress or waits for approval, is named below"},
		{plans(2), "2 InstallPlans (2 Complete); 2 more, which are in progress or wait for approval, are named below"},
	} {
		if got := tt.count.describe(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestCheckPods checks the pods of a stopped Deployment: only those that may still write prevent a supervisor.
func TestCheckPods(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"app": "olm-operator"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "olm-operator"}, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}
	stopped := []competing.Workload{{Namespace: "olm", Name: "olm-operator"}, {Namespace: "olm", Name: "deleted"}}
	pod := func(name string, phase corev1.PodPhase, labels map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: name, Labels: labels}, Status: corev1.PodStatus{Phase: phase}}
	}
	forbidden := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)
	}}
	for _, tt := range []struct {
		name  string
		pods  []client.Object
		calls interceptor.Funcs
		want  string
	}{
		{name: "none"},
		{name: "terminating", pods: []client.Object{pod("slow", corev1.PodRunning, labels)}, want: "olm/slow"},
		{name: "ended", pods: []client.Object{pod("done", corev1.PodSucceeded, labels), pod("crashed", corev1.PodFailed, labels)}},
		{name: "another Deployment's", pods: []client.Object{pod("other", corev1.PodRunning, nil)}},
		{name: "without permission", pods: []client.Object{pod("slow", corev1.PodRunning, labels)}, calls: forbidden},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := fake.NewClientBuilder().WithObjects(append(tt.pods, d.DeepCopy())...).WithInterceptorFuncs(tt.calls).Build()
			err := CheckPods(t.Context(), c, stopped)
			if refused := errors.Is(err, ErrRefused); refused != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one about %q", err, tt.want)
			}
		})
	}
}
