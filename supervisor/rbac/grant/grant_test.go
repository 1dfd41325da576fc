package grant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// newGranter returns a Granter that creates roles in a fake API server without other clients.
func newGranter(t *testing.T) *Granter {
	t.Helper()
	scheme := fixtures.Scheme(t)
	return New(fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if review, ok := o.(*authenticationv1.SelfSubjectReview); ok {
				review.Status.UserInfo.Username = "system:serviceaccount:shop:supervisor"
				return nil
			}
			return c.Create(ctx, o, opts...)
		},
	}).Build())
}

// permissions returns the names of the roles that are granted and bound.
func (g *Granter) rights(t *testing.T) []string {
	t.Helper()
	roles, bindings := &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}
	for _, list := range []client.ObjectList{roles, bindings} {
		if err := g.client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for i := range roles.Items {
		name := roles.Items[i].Name
		if slices.ContainsFunc(bindings.Items, func(b rbacv1.ClusterRoleBinding) bool { return b.RoleRef.Name == name }) {
			names = append(names, name)
		}
	}
	if len(bindings.Items) != len(names) || len(roles.Items) != len(names) {
		t.Errorf("%d roles, %d bindings", len(roles.Items), len(bindings.Items))
	}
	return names
}

// TestRightIsRevokedAfterItsLastUse runs two checks of one kind, and starts a leader during them.
func TestRightIsRevokedAfterItsLastUse(t *testing.T) {
	g := newGranter(t)
	lamps := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "lamps.example"}}
	trays := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "trays.example"}}
	grant := func(crd *apiextensionsv1.CustomResourceDefinition) func() {
		t.Helper()
		revoke, err := g.grant(t.Context(), crd, Check)
		if err != nil {
			t.Fatal(err)
		}
		return revoke
	}
	want := func(when string, names ...string) {
		t.Helper()
		if got := g.rights(t); !slices.Equal(got, names) {
			t.Errorf("%s: rights %v, want %v", when, got, names)
		}
	}
	// Objects that a killed process left behind.
	for _, o := range leftovers("gone.example") {
		if err := g.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	first, second, other := grant(lamps), grant(lamps), grant(trays)
	want("granted", "chandlery-check-gone.example", "chandlery-check-lamps.example", "chandlery-check-trays.example")
	if err := g.revokeUnused(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("leftovers revoked", "chandlery-check-lamps.example", "chandlery-check-trays.example")
	first()
	want("one of two uses ended", "chandlery-check-lamps.example", "chandlery-check-trays.example")
	other()
	second()
	want("all uses ended")
	if len(g.uses) > 0 {
		t.Errorf("uses %v", g.uses)
	}
	grant(lamps)()
	want("granted again and revoked")
}

// TestForeignRoleIsLeft checks that a role of the same name from another owner is neither used nor deleted.
func TestForeignRoleIsLeft(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "lamps.example"}}
	for _, labels := range []map[string]string{nil, {"team": "a"}} {
		for _, foreign := range leftovers("lamps.example") {
			g := newGranter(t)
			foreign.SetLabels(labels)
			if err := g.client.Create(t.Context(), foreign); err != nil {
				t.Fatal(err)
			}
			if _, err := g.grant(t.Context(), crd, Check); !errors.Is(err, errOtherOwner) {
				t.Errorf("granting over %T with labels %v: %v, want %v", foreign, labels, err, errOtherOwner)
			}
			if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil {
				t.Errorf("%T with labels %v of another owner: %v", foreign, labels, err)
			}
		}
	}
}

func leftovers(definition string) []client.Object {
	role, binding := rolesFor(&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: definition}}, Check, "user")
	return []client.Object{role, binding}
}

// TestIsForbidden distinguishes a missing permission, for which one is granted, from a refusal by admission, which
// more permissions do not change.
func TestIsForbidden(t *testing.T) {
	cups := schema.GroupResource{Group: "tea.example", Resource: "cups"}
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":             {},
		"a right":             {err: fmt.Errorf("deleting: %w", apierrors.NewForbidden(cups, "a", errors.New(`User "u" cannot delete resource "cups" in API group "tea.example" in the namespace "n"`))), want: true},
		"a right to list":     {err: apierrors.NewForbidden(cups, "", errors.New(`User "u" cannot list resource "cups" in API group "tea.example" at the cluster scope`)), want: true},
		"a webhook's refusal": {err: apierrors.NewForbidden(cups, "a", errors.New(`admission webhook "w" denied the request: a full cup cannot go`))},
		"an admission plugin": {err: apierrors.NewForbidden(cups, "a", errors.New("namespace n is being terminated"))},
		"another error":       {err: apierrors.NewInternalError(errors.New("it cannot be"))},
	} {
		if got := IsForbidden(tt.err); got != tt.want {
			t.Errorf("%s: Lacking(%v) = %t", name, tt.err, got)
		}
	}
}

// TestFailedRevocationIsRetried uses a server that refuses to delete a grant at first.
func TestFailedRevocationIsRetried(t *testing.T) {
	g := newGranter(t)
	plain := g.client
	synctest.Test(t, func(t *testing.T) {
		refusals := 3
		g = New(interceptor.NewClient(plain.(client.WithWatch), interceptor.Funcs{
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				refusals--
				if refusals >= 0 {
					return errors.New("denied by a webhook")
				}
				return c.Delete(ctx, o, opts...)
			},
		}))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- g.run(ctx) }()
		synctest.Wait()
		revoke, err := g.grant(ctx, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "lamps.example"}}, Check)
		if err != nil {
			t.Fatal(err)
		}
		revoke()
		<-time.After(2 * revokeRetryInterval) // by the clock of the bubble
		synctest.Wait()
		if got := g.rights(t); len(got) > 0 {
			t.Errorf("rights %v are left", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestLeftoversAreRetried uses a server that is not available when a leader starts.
func TestLeftoversAreRetried(t *testing.T) {
	g := newGranter(t)
	for _, o := range leftovers("gone.example") {
		if err := g.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		away := true
		g.client = interceptor.NewClient(g.client.(client.WithWatch), interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if away {
					away = false
					return errors.New("unavailable")
				}
				return c.List(ctx, list, opts...)
			},
		})
		if err := g.revokeUnused(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	if got := g.rights(t); len(got) > 0 {
		t.Errorf("rights %v are left", got)
	}
}
