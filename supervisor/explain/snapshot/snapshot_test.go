package snapshot

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/scheme"
)

// TestWaitingSupervisors checks that the pods of supervisors are read before a Lease exists, which the first leader creates.
func TestWaitingSupervisors(t *testing.T) {
	kinds, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	const home = "chandlery-system"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "supervisor-x"}}
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "till"}}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: api.LeaseName}}
	for name, objects := range map[string][]client.Object{"no Lease": {pod, other}, "a Lease": {pod, other, lease}} {
		c := fake.NewClientBuilder().WithScheme(kinds).WithObjects(objects...).
			WithIndex(&coordinationv1.Lease{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).Build()
		state, err := Read(t.Context(), c, Options{SupervisorNamespaces: []string{home, "olm"}})
		if err != nil {
			t.Fatal(err)
		}
		if len(state.Pods) != 1 || state.Pods[0].Name != pod.Name {
			t.Errorf("%s: pods %v", name, state.Pods)
		}
	}
}
