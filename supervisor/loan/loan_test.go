package loan

import (
	"context"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// bank is where a lender keeps its roles; it is asked by nobody else.
func bank(t *testing.T) *Lender {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := rbacv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
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

// rights names the roles that are lent and bound.
func (l *Lender) rights(t *testing.T) []string {
	t.Helper()
	roles, bindings := &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}
	for _, list := range []client.ObjectList{roles, bindings} {
		if err := l.client.List(t.Context(), list); err != nil {
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

// TestRightIsThereUntilTheLastGivesItBack has two checks look at one kind, and a
// leader begin in the midst of it.
func TestRightIsThereUntilTheLastGivesItBack(t *testing.T) {
	l := bank(t)
	lamps := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "lamps.example"}}
	trays := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "trays.example"}}
	borrow := func(crd *apiextensionsv1.CustomResourceDefinition) func() {
		t.Helper()
		giveBack, err := l.borrow(t.Context(), crd, Check)
		if err != nil {
			t.Fatal(err)
		}
		return giveBack
	}
	want := func(when string, names ...string) {
		t.Helper()
		if got := l.rights(t); !slices.Equal(got, names) {
			t.Errorf("%s: rights %v, want %v", when, got, names)
		}
	}
	// What a process left that was killed.
	for _, o := range leftovers("gone.example") {
		if err := l.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	first, second, other := borrow(lamps), borrow(lamps), borrow(trays)
	want("lent", "chandlery-check-gone.example", "chandlery-check-lamps.example", "chandlery-check-trays.example")
	if err := l.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("cleared", "chandlery-check-lamps.example", "chandlery-check-trays.example")
	first()
	want("one of two gave it back", "chandlery-check-lamps.example", "chandlery-check-trays.example")
	other()
	second()
	want("all gave it back")
	if len(l.loans) > 0 {
		t.Errorf("loans %v", l.loans)
	}
	borrow(lamps)()
	want("borrowed again and given back")
}

func leftovers(definition string) []client.Object {
	role, binding := borrowed(&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: definition}}, Check, "user")
	return []client.Object{role, binding}
}
