package migration

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// verify returns a verification that checks once, in a cluster with some objects.
func verify(t *testing.T, objects ...client.Object) *Verification {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	return &Verification{Options: Options{Config: competing.Config{Client: c, Namespace: "home", Clock: clock.RealClock{}}}, Timeout: time.Nanosecond}
}

// supervisorPod returns a pod of the supervisors with one container.
func supervisorPod(name string, status corev1.ContainerStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: name, Labels: map[string]string{labelSupervisor: api.LeaseName}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{status}},
	}
}

// TestAwaitStart checks that OLM is not stopped before a supervisor has started, such as with an image that cannot be pulled.
func TestAwaitStart(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	unpulled := supervisorPod("a", corev1.ContainerStatus{
		Image: "chandlery/supervisor:latest", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
	})
	scheduling := supervisorPod("a", corev1.ContainerStatus{})
	for _, tt := range []struct {
		name    string
		objects []client.Object
		want    string
	}{
		{"no pod", nil, "there is no pod"},
		{"a pod that is not scheduled", []client.Object{scheduling}, "Pod a is Pending"},
		{"an image that cannot be pulled", []client.Object{unpulled}, "Pod a: ImagePullBackOff (image chandlery/supervisor:latest); see: kubectl -n home describe pods"},
		{"a container that starts", []client.Object{supervisorPod("a", corev1.ContainerStatus{State: running, Started: new(false)})}, "Pod a is Pending"},
		{"one of two has started", []client.Object{unpulled, supervisorPod("b", corev1.ContainerStatus{State: running, Started: new(true)})}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := verify(t, tt.objects...).AwaitStart(t.Context())
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// TestOutdated checks that pods with earlier settings are found, and not before the status of the Deployment is up to date.
func TestOutdated(t *testing.T) {
	for _, tt := range []struct {
		name             string
		observed         int64
		replicas, update int32
		want             string
	}{
		{"all pods are new", 2, 2, 2, ""},
		{"the first status is missing", 0, 0, 0, ""},
		{"the status is old", 1, 3, 1, ""},
		{"a rollout that waits", 2, 3, 1, "2 pods of Deployment home/chandlery-supervisor have earlier settings than the Deployment; " +
			"replace all its pods with: kubectl -n home delete replicasets --cascade=foreground -l app.kubernetes.io/name=chandlery-supervisor"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := verify(t, &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: api.LeaseName, Generation: 2, Labels: map[string]string{labelSupervisor: api.LeaseName}},
				Status:     appsv1.DeploymentStatus{ObservedGeneration: tt.observed, Replicas: tt.replicas, UpdatedReplicas: tt.update},
			}).Outdated(t.Context())
			if err != nil || got != tt.want {
				t.Errorf("%q, error %v; want %q", got, err, tt.want)
			}
		})
	}
}

// TestAwaitSupervisor checks that a Lease counts only if it is renewed, and that the error names the logs.
func TestAwaitSupervisor(t *testing.T) {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: api.LeaseName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("a"), RenewTime: &metav1.MicroTime{Time: time.Unix(1, 0)}},
	}
	const want = "no supervisor leads; see: kubectl -n home logs -l app.kubernetes.io/name=chandlery-supervisor"
	for name, objects := range map[string][]client.Object{"no Lease": nil, "a Lease that is not renewed": {lease}} {
		if _, err := verify(t, objects...).AwaitSupervisor(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
