package grant

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/api"
)

// foreignUID is the UID of the objects that an administrator creates in place of granted ones.
const foreignUID types.UID = "foreign"

// replacing returns a client whose objects an administrator replaces just before each is deleted, under the
// same name. If sameVersion is true, only their UID differs, else only their version. Like the API server, it
// deletes an object only if the preconditions hold.
func replacing(plain client.Client, sameVersion bool) client.Client {
	return interceptor.NewClient(plain.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // a fake one can be watched
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			live, _ := o.DeepCopyObject().(client.Object)
			if err := c.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
				return err
			}
			var options client.DeleteOptions
			options.ApplyOptions(opts)
			uid, version := foreignUID, live.GetResourceVersion()
			if !sameVersion {
				uid, version = live.GetUID(), version+"0"
			}
			only := options.Preconditions
			if only != nil && (only.UID != nil && *only.UID != uid || only.ResourceVersion != nil && *only.ResourceVersion != version) {
				return apierrors.NewConflict(schema.GroupResource{Resource: "roles"}, o.GetName(), errors.New("the object has been replaced"))
			}
			return c.Delete(ctx, o)
		},
	})
}

// stillThere reports whether the role and the binding of a grant exist.
func stillThere(t *testing.T, g *Granter, name string) bool {
	t.Helper()
	for _, o := range []client.Object{&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}} {
		if err := g.client.Get(t.Context(), client.ObjectKey{Name: name}, o); err != nil {
			t.Logf("%T: %v", o, err)
			return false
		}
	}
	return true
}

// TestReplacedGrantIsLeft replaces the roles of a grant at the moment when the grant is revoked or cleared.
func TestReplacedGrantIsLeft(t *testing.T) {
	const name = "chandlery-check-lamps.example"
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "lamps.example"}}
	for reason, sameVersion := range map[string]bool{"another object": true, "a changed object": false} {
		t.Run(reason, func(t *testing.T) {
			g := newGranter(t)
			revoke, err := g.grant(t.Context(), crd, Check)
			if err != nil {
				t.Fatal(err)
			}
			g.client = replacing(g.client, sameVersion)
			revoke()
			if !stillThere(t, g, name) {
				t.Error("revoking the grant deleted what has taken its place")
			}
			if err := g.deleteAllUnused(t.Context()); !apierrors.IsConflict(err) {
				t.Errorf("clearing gives %v, want a conflict", err)
			}
			if !stillThere(t, g, name) {
				t.Error("clearing the grant deleted what has taken its place")
			}
		})
	}
}

// TestGrantHoldsNoMore compares the role and the binding of a grant in full.
func TestGrantHoldsNoMore(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "lamps.example"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example", Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "lamps"},
		},
	}
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "shop", Name: "supervisor"}
	user := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "admin"}
	for name, tt := range map[string]struct {
		permission Permission
		user       string
		verbs      []string
		subject    rbacv1.Subject
	}{
		"to check, an account": {Check, "system:serviceaccount:shop:supervisor", []string{"list"}, account},
		"to clean up, a user":  {Cleanup, "admin", []string{"list", "delete"}, user},
	} {
		role, binding := rolesFor(crd, tt.permission, tt.user)
		meta := metav1.ObjectMeta{Name: "chandlery-" + string(tt.permission) + "-lamps.example", Labels: map[string]string{api.LabelGrant: "true"}}
		wantRole := &rbacv1.ClusterRole{
			ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"example"}, Resources: []string{"lamps"}, Verbs: tt.verbs}},
		}
		wantBinding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, Subjects: []rbacv1.Subject{tt.subject},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		}
		if diff := cmp.Diff(wantRole, role); diff != "" {
			t.Errorf("%s: role (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(wantBinding, binding); diff != "" {
			t.Errorf("%s: binding (-want +got):\n%s", name, diff)
		}
	}
}

// TestGrantGetsItsContent has roles and bindings with the name and the label of a grant, but with other content.
func TestGrantGetsItsContent(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "lamps.example"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example", Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "lamps"},
		},
	}
	wantRole, wantBinding := rolesFor(crd, Check, "system:serviceaccount:shop:supervisor")
	for _, tt := range []struct {
		reason string
		change func(*rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding)
		writes []string
	}{
		{reason: "the wanted content", change: func(*rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding) {}},
		{
			reason: "no rules", writes: []string{"update"},
			change: func(r *rbacv1.ClusterRole, _ *rbacv1.ClusterRoleBinding) { r.Rules = nil },
		},
		{
			reason: "more rules", writes: []string{"update"},
			change: func(r *rbacv1.ClusterRole, _ *rbacv1.ClusterRoleBinding) {
				r.Rules = append(r.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}})
			},
		},
		{
			reason: "rules of other roles, with which a controller replaces its own", writes: []string{"update"},
			change: func(r *rbacv1.ClusterRole, _ *rbacv1.ClusterRoleBinding) {
				r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}}
			},
		},
		{
			reason: "other subjects", writes: []string{"update"},
			change: func(_ *rbacv1.ClusterRole, b *rbacv1.ClusterRoleBinding) { b.Subjects[0].Name = "other" },
		},
		{
			reason: "another role, which cannot be changed", writes: []string{"delete", "create"},
			change: func(_ *rbacv1.ClusterRole, b *rbacv1.ClusterRoleBinding) { b.RoleRef.Name = "other" },
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			role, binding := wantRole.DeepCopy(), wantBinding.DeepCopy()
			tt.change(role, binding)
			g := newGranter(t)
			for _, o := range []client.Object{role, binding} {
				if err := g.client.Create(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			var writes []string
			g.client = recordWrites(g.client, &writes)
			if _, err := g.grant(t.Context(), crd, Check); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.writes, writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			gotRole, gotBinding := &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}
			for _, o := range []client.Object{gotRole, gotBinding} {
				if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(wantRole), o); err != nil {
					t.Fatal(err)
				}
				o.SetResourceVersion("")
			}
			if diff := cmp.Diff(wantRole, gotRole); diff != "" {
				t.Errorf("role (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(wantBinding, gotBinding); diff != "" {
				t.Errorf("binding (-want +got):\n%s", diff)
			}
		})
	}
}

// recordWrites returns a client that records its successful writes.
func recordWrites(plain client.Client, writes *[]string) client.Client {
	record := func(verb string, err error) error {
		if err == nil {
			*writes = append(*writes, verb)
		}
		return err
	}
	return interceptor.NewClient(plain.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // a fake one can be watched
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if _, review := o.(*authenticationv1.SelfSubjectReview); review {
				return c.Create(ctx, o, opts...)
			}
			return record("create", c.Create(ctx, o, opts...))
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return record("update", c.Update(ctx, o, opts...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return record("delete", c.Delete(ctx, o, opts...))
		},
	})
}

// TestReplacedBindingIsLeft replaces a binding with another role at the moment when a grant deletes it.
func TestReplacedBindingIsLeft(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "lamps.example"}}
	for reason, sameVersion := range map[string]bool{"another object": true, "a changed object": false} {
		t.Run(reason, func(t *testing.T) {
			g := newGranter(t)
			_, binding := rolesFor(crd, Check, "user")
			binding.RoleRef.Name = "other"
			if err := g.client.Create(t.Context(), binding); err != nil {
				t.Fatal(err)
			}
			g.client = replacing(g.client, sameVersion)
			if _, err := g.grant(t.Context(), crd, Check); !apierrors.IsConflict(err) {
				t.Errorf("granting gives %v, want a conflict", err)
			}
			if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(binding), binding); err != nil {
				t.Errorf("the binding that has taken its place: %v", err)
			}
		})
	}
}
