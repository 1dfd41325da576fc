package uninstall

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/api/scheme"
)

// TestRemoveWaitsForPods checks that each Deployment's own pods end before anything else is deleted, such as their
// permissions.
func TestRemoveWaitsForPods(t *testing.T) {
	t.Parallel()
	kinds, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	const namespace = "chandlery-system"
	var plan Plan
	var objects []client.Object
	for _, name := range []string{packageServer, supervisorName} {
		labels := map[string]string{"app": name, "app.kubernetes.io/name": name}
		objects = append(objects,
			&appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
				Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
			},
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}},
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
		)
		plan.Remove = append(plan.Remove, Object{"apps", "v1", "Deployment", namespace, name}, Object{"", "v1", "ServiceAccount", namespace, name})
	}
	var steps []string
	deleted := "" // the Deployment that was deleted last
	r := remover{
		namespace: namespace, timeout: 3 * time.Second, report: func(step string) { steps = append(steps, step) },
		client: interceptor.NewClient(fake.NewClientBuilder().WithScheme(kinds).WithObjects(objects...).Build(), interceptor.Funcs{
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
				if o.GetObjectKind().GroupVersionKind().Kind == "Deployment" {
					deleted = o.GetName()
				}
				return c.Delete(ctx, o, options...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if err := c.List(ctx, list, options...); err != nil {
					return err
				}
				if pods, is := list.(*corev1.PodList); is {
					steps = append(steps, fmt.Sprintf("pods: %d", len(pods.Items)))
				}
				// The pod ends after it was listed once.
				return c.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), client.MatchingLabels{"app": deleted})
			},
		}),
	}
	if err := r.remove(t.Context(), &plan); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range []string{packageServer, supervisorName} {
		want = append(want, "deleting Deployment "+namespace+"/"+name, "pods: 1", "pods: 0", "deleting ServiceAccount "+namespace+"/"+name)
	}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}
