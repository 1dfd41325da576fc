package migration

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
		{Count{Kind: "CatalogSource", Total: 3, By: map[string]int{"grpc": 2}, Hosted: 1}, "2 CatalogSources (2 grpc); 1 more, which OLM runs in a pod, is among the changes"},
		{Count{Kind: "CatalogSource", Total: 2, Hosted: 2}, "0 CatalogSources; 2 more, which OLM runs in pods, are among the changes"},
	} {
		if got := tt.count.describe(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestHostedCatalogs checks that a catalog is either among the unchanged objects or among the changes.
func TestHostedCatalogs(t *testing.T) {
	t.Parallel()
	image := object("CatalogSource", "olm/image", map[string]any{"spec|sourceType": "grpc", "spec|image": "example.com/catalog"})
	content := object("CatalogSource", "olm/content", map[string]any{"spec|sourceType": "configmap", "spec|configMap": "content"})
	address := object("CatalogSource", "olm/address", map[string]any{"spec|sourceType": "grpc", "spec|address": "catalog.shop:50051"})
	const unchanged = "1 CatalogSource (1 grpc)"
	for name, tt := range map[string]struct {
		sources       []*unstructured.Unstructured
		adopted, says string
	}{
		"Address": {[]*unstructured.Unstructured{address}, unchanged, ""},
		"One":     {[]*unstructured.Unstructured{address, image}, unchanged + "; 1 more, which OLM runs in a pod, is among the changes", "1 catalog runs as a Deployment behind its Service; OLM's pod is deleted"},
		"Several": {[]*unstructured.Unstructured{address, image, content}, unchanged + "; 2 more, which OLM runs in pods, are among the changes", "2 catalogs run as Deployments behind their Services; OLM's pods are deleted"},
	} {
		// The client adds the kinds to its scheme, so it must not be the shared one.
		b := fake.NewClientBuilder().WithScheme(runtime.NewScheme())
		for _, source := range tt.sources {
			source = source.DeepCopy()
			source.SetAPIVersion("operators.coreos.com/v1alpha1")
			b.WithObjects(source)
		}
		counts, err := count(t.Context(), b.Build())
		if err != nil {
			t.Fatal(err)
		}
		p := NewPlan(&ClusterState{Counts: counts, Managers: competing.Finding{Workloads: []competing.Workload{workload("olm-operator", 1, false)}}}, false)
		if !slices.Contains(p.Adopted, tt.adopted) {
			t.Errorf("%s: managed without changes: %q", name, p.Adopted)
		}
		if changes := strings.Join(p.Changes, "\n"); !strings.Contains(changes, tt.says) || tt.says == "" && strings.Contains(changes, "catalog") {
			t.Errorf("%s: changes %q", name, p.Changes)
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
