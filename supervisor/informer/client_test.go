package informer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/informer"
)

// readers returns a cache with transformed objects, and an API server that has them whole and counts reads.
func readers(t *testing.T, objects ...client.Object) (cached, live client.Client, reads *int) {
	t.Helper()
	reads = new(int)
	live = interceptor.NewClient(fake.NewClientBuilder().WithObjects(objects...).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
			*reads++
			return c.Get(ctx, key, into, opts...)
		},
	})
	builder := fake.NewClientBuilder()
	for _, o := range objects {
		left, err := informer.Transform(o.DeepCopyObject())
		if err != nil {
			t.Fatal(err)
		}
		reduced, _ := left.(client.Object)
		builder.WithObjects(reduced)
	}
	return builder.Build(), live, reads
}

// TestGetReadsWholeObjects checks that no returned object lacks a part.
func TestGetReadsWholeObjects(t *testing.T) {
	spec := appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "kettle:v1"}}}}}
	for _, tt := range []struct {
		reason string
		labels map[string]string
		reads  int
	}{
		{"one of ours is in the cache whole", map[string]string{"olm.managed": "true"}, 0},
		{"a foreign one is not", nil, 1},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			meta := metav1.ObjectMeta{Namespace: "a", Name: "kettle", Labels: tt.labels}
			cached, live, reads := readers(t, &appsv1.Deployment{ObjectMeta: meta, Spec: spec})
			got := &appsv1.Deployment{}
			err := informer.Reader{Cached: cached, Live: live}.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "kettle"}, got)
			if err != nil {
				t.Fatal(err)
			}
			if informer.Trimmed(got) || len(got.Spec.Template.Spec.Containers) != 1 {
				t.Errorf("got %v, want the whole Deployment", got)
			}
			if *reads != tt.reads {
				t.Errorf("%d reads at the API server, want %d", *reads, tt.reads)
			}
		})
	}
}

// TestCompleteReadsWholeLists uses roles that are too large for the cache, more than Complete reads.
func TestCompleteReadsWholeLists(t *testing.T) {
	var objects []client.Object
	rules := []rbacv1.PolicyRule{{ResourceNames: strings.Split(text(16<<10), "")}} // 48 KiB of Protobuf
	for i := range 40 {
		role := &rbacv1.Role{Rules: rules}
		role.Namespace, role.Name, role.Labels = "a", fmt.Sprintf("%02d", i), map[string]string{}
		if i >= 38 {
			role.Labels["olm.owner"] = "kettle.v1"
		}
		objects = append(objects, role)
	}
	cached, live, reads := readers(t, objects...)
	var list rbacv1.RoleList
	if err := cached.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	owned := func(r *rbacv1.Role) bool { return r.Labels["olm.owner"] != "" }
	if err := informer.Complete(t.Context(), live, list.Items, owned); err != nil {
		t.Fatal(err)
	}
	whole := 0
	for i := range list.Items {
		role := &list.Items[i]
		if !informer.Trimmed(role) {
			whole++
		} else if owned(role) {
			t.Errorf("role %s of ours lacks its rules", role.Name)
		}
	}
	if *reads != 32 || whole != 32 {
		t.Errorf("%d reads, %d whole roles, want 32", *reads, whole)
	}
	if err := cached.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	if err := informer.Complete(t.Context(), live, list.Items, func(*rbacv1.Role) bool { return true }); err == nil {
		t.Error("roles that are needed lack their rules, and there is no error")
	}
}
