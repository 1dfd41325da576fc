package webhook

import (
	"context"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// oldestObjects returns the six objects that OLM's oldest releases created for an API.
func oldestObjects(labels map[string]string) []client.Object {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
	}
	return []client.Object{
		&corev1.Service{ObjectMeta: meta("kitchen", "v1-hats-example")},
		&corev1.Secret{ObjectMeta: meta("kitchen", "v1.hats.example-cert")},
		&rbacv1.Role{ObjectMeta: meta("kitchen", "v1.hats.example-cert")},
		&rbacv1.RoleBinding{ObjectMeta: meta("kitchen", "v1.hats.example-cert")},
		&rbacv1.RoleBinding{ObjectMeta: meta("kube-system", "v1.hats.example-auth-reader")},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta("", "v1.hats.example-system:auth-delegator")},
	}
}

// TestRemoveOldestNames checks which objects with the oldest names are removed.
func TestRemoveOldestNames(t *testing.T) {
	own := ownership.ManagedLabels(hooked())
	other := ownership.ManagedLabels(hooked())
	other["olm.owner"] = "pot.v1"
	for name, tc := range map[string]struct {
		labels     map[string]string
		deployment string
		forbidden  string // a resource that may not be deleted
		left       int
	}{
		"Own":         {own, "kettle", "", 0},
		"Unlabelled":  {nil, "kettle", "", 6},
		"Other":       {other, "kettle", "", 6},
		"Forbidden":   {own, "kettle", "ClusterRoleBinding", 1},
		"SameService": {own, "v1-hats", "", 6},
	} {
		t.Run(name, func(t *testing.T) {
			objects := oldestObjects(tc.labels)
			c := interceptor.NewClient(memory(t, objects...).(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // a fake client
				Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
					if kind := obj.GetObjectKind().GroupVersionKind().Kind; kind == tc.forbidden {
						return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, obj.GetName(), nil)
					}
					return c.Delete(ctx, obj, opts...)
				},
			})
			api := operatorsv1alpha1.APIServiceDescription{Group: "hats.example", Version: "v1"}
			if name == "SameService" {
				api.Group = "hats-service"
			}
			s := newState(Version{CSV: hooked()}, []webhook.Server{{Deployment: tc.deployment, APIs: []operatorsv1alpha1.APIServiceDescription{api}}}, webhook.Scope{})
			recorder := events.NewFakeRecorder(10)
			_, writer := New(Options{Client: c, Live: c, Events: recorder})
			for range 2 {
				if err := writer.RemoveOldestNames(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			if said := len(recorder.Events) > 0; said != (tc.forbidden != "") {
				t.Errorf("an Event was recorded: %v", said)
			}
			left := 0
			for _, o := range objects {
				err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o)
				if err == nil {
					left++
				} else if !apierrors.IsNotFound(err) {
					t.Error(err)
				}
			}
			if left != tc.left {
				t.Errorf("%d objects are left, want %d", left, tc.left)
			}
		})
	}
}
