package copiedcsv

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/informer"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// largeRules returns rules that are too large for the cache.
func largeRules(resource string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"get"},
		ResourceNames: strings.Split(strings.Repeat("x", 2<<10), ""),
	}}
}

// labelled returns a role with the labels of a role of kettle.v1, which anyone can set.
func labelled(namespace, name, from string, rules []rbacv1.PolicyRule) *rbacv1.Role {
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
		"olm.owner": "kettle.v1", "olm.owner.namespace": namespace, "olm.owner.kind": "ClusterServiceVersion",
	}}, Rules: rules}
	if from != "" {
		role.Labels["olm.copiedFrom"] = from
	}
	return role
}

// ownedBy adds the owner reference of a copied role.
func ownedBy(role *rbacv1.Role, uid types.UID) *rbacv1.Role {
	role.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "kettle.v1", UID: uid,
	}}
	return role
}

// observed returns what a reader observes of kettle.v1, and the names of the objects that it reads from
// the API server. The version has a copy in the namespace pantry.
func observed(t *testing.T, csv *operatorsv1alpha1.ClusterServiceVersion, roles ...*rbacv1.Role) (o *input, reads []string) {
	t.Helper()
	s := fixtures.Scheme(t)
	cached, live := fake.NewClientBuilder().WithScheme(s), fake.NewClientBuilder().WithScheme(s)
	for _, kind := range []client.Object{&rbacv1.Role{}, &rbacv1.RoleBinding{}} {
		cached.WithIndex(kind, indexOwner, byOwner)
	}
	cached.WithIndex(&operatorsv1alpha1.ClusterServiceVersion{}, indexName, byName)
	if csv != nil {
		cached.WithObjects(csv)
	}
	for _, role := range roles {
		live.WithObjects(role)
		left, err := informer.Transform(role.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		cached.WithObjects(left.(*rbacv1.Role))
	}
	copies := fake.NewClientBuilder().WithScheme(s).WithObjects(copyIn("pantry")).WithIndex(copyMetadata(), indexName, byName).Build()
	counting := interceptor.NewClient(live.Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
			reads = append(reads, key.String())
			return c.Get(ctx, key, into, opts...)
		},
	})
	o, err := reader{client: cached.Build(), live: counting, copies: copies}.observe(t.Context(), types.NamespacedName{Namespace: home, Name: "kettle.v1"})
	if err != nil {
		t.Fatal(err)
	}
	return o, reads
}

// namesOf returns the names of roles.
func namesOf(roles []rbacv1.Role) (names []string) {
	for i := range roles {
		names = append(names, roles[i].Name)
	}
	return names
}

// TestRolesOfOthersDoNotCount has large roles with the labels of copied roles, more than a reader reads
// whole.
func TestRolesOfOthersDoNotCount(t *testing.T) {
	roles := []*rbacv1.Role{ownedBy(labelled("pantry", "own", home, rules()), "uid-pantry")}
	for i := range 40 {
		name := fmt.Sprintf("foreign-%02d", i)
		roles = append(roles,
			labelled("elsewhere", name, home, largeRules("pods")),
			ownedBy(labelled("garden", name, home, largeRules("pods")), "uid-pantry"),
			labelled("pantry", name, home, largeRules("pods")),
			ownedBy(labelled("pantry", "former-"+name, home, largeRules("pods")), "uid-of-a-former-copy"))
	}
	o, reads := observed(t, kettle("pantry"), roles...)
	if len(reads) > 0 {
		t.Errorf("reads %d objects from the API server, want none", len(reads))
	}
	if got := namesOf(o.granted["pantry"].roles); len(o.granted) != 1 || cmp.Diff([]string{"own"}, got) != "" {
		t.Errorf("roles in %d namespaces count, of pantry %v; want those of pantry alone: own", len(o.granted), got)
	}
}

// TestLargeRolesOfAVersion has large roles in the version's own namespace, more than a reader reads whole.
func TestLargeRolesOfAVersion(t *testing.T) {
	csv := kettle("pantry")
	csv.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules = largeRules("configmaps")
	roles := []*rbacv1.Role{labelled(home, "small", "", rules())}
	for i := range 40 {
		roles = append(roles, labelled(home, fmt.Sprintf("declared-%02d", i), "", largeRules("configmaps")),
			labelled(home, fmt.Sprintf("undeclared-%02d", i), "", largeRules("pods")))
	}
	const most = 32
	o, reads := observed(t, csv, roles...)
	if len(reads) != most {
		t.Errorf("reads %d objects from the API server, want %d", len(reads), most)
	}
	for i := range o.rbac.roles {
		role := &o.rbac.roles[i]
		if len(role.Rules) > 0 && role.Name != "small" && &role.Rules[0] != &o.origin.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules[0] {
			t.Errorf("role %s has its own rules in memory", role.Name)
		}
	}
	if got := len(o.rbac.roles); got != len(roles) {
		t.Errorf("%d roles, want %d", got, len(roles))
	}
	if _, reads := observed(t, nil, roles...); len(reads) > 0 {
		t.Errorf("reads %d roles of a version that is gone", len(reads))
	}
}
