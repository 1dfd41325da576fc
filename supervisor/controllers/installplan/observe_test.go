package installplan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestObserveNamespace has a namespace with one OperatorGroup, and the ServiceAccount cook.
func TestObserveNamespace(t *testing.T) {
	scheme := fixtures.Scheme(t)
	named := func(name string, uid types.UID) *account {
		return &account{
			name: types.NamespacedName{Namespace: "kitchen", Name: name}, group: types.NamespacedName{Namespace: "kitchen", Name: "own"}, uid: uid,
		}
	}
	selector := func(s metav1.LabelSelector) operatorsv1.OperatorGroupSpec {
		return operatorsv1.OperatorGroupSpec{Selector: &s}
	}
	exists := metav1.LabelSelectorRequirement{Key: "tier", Operator: metav1.LabelSelectorOpExists}
	cases := map[string]struct {
		reason string
		spec   operatorsv1.OperatorGroupSpec
		want   namespaceState
	}{
		"All":           {"a group without targets is for all namespaces", operatorsv1.OperatorGroupSpec{}, namespaceState{unbounded: true}},
		"EmptySelector": {"an empty selector selects all namespaces", selector(metav1.LabelSelector{}), namespaceState{unbounded: true}},
		"Named":         {"the group lists its namespaces", operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"kitchen"}}, namespaceState{}},
		"Labels":        {"the group selects by labels", selector(metav1.LabelSelector{MatchLabels: map[string]string{"tier": "hot"}}), namespaceState{}},
		"Expressions":   {"the group selects by expressions", selector(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{exists}}), namespaceState{}},
		"NamedAndSelector": {
			"listed namespaces count before an empty selector",
			operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"kitchen"}, Selector: &metav1.LabelSelector{}},
			namespaceState{},
		},
		"Account": {"the account bounds a group for all namespaces", operatorsv1.OperatorGroupSpec{ServiceAccountName: "cook"}, namespaceState{account: named("cook", "uid-cook")}},
		"NoAccount": {
			"the account does not exist",
			operatorsv1.OperatorGroupSpec{ServiceAccountName: "waiter"},
			namespaceState{problem: "please make sure the service account exists. sa=waiter operatorgroup=kitchen/own", account: named("waiter", "")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
				&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "own"}, Spec: tc.spec},
				&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "cook", UID: "uid-cook"}},
			).Build()
			got, err := observeNamespace(t.Context(), c, c, "kitchen")
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(namespaceState{}, account{})); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAccountOfAnotherClient checks that only the account of another client outlives the account of the OperatorGroup.
func TestAccountOfAnotherClient(t *testing.T) {
	t.Parallel()
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const names, other = `{"f:status":{"f:attenuatedServiceAccountRef":{}}}`, `{"f:status":{"f:phase":{}}}`
	for _, tt := range []struct {
		reason string
		fields []metav1.ManagedFieldsEntry
		want   bool
	}{
		{"another client wrote it", []metav1.ManagedFieldsEntry{entry("kubectl", names), entry(api.FieldManager, other)}, true},
		{"the supervisor wrote it", []metav1.ManagedFieldsEntry{entry("kubectl", other), entry(api.FieldManager, names)}, false},
		{"nothing is known", nil, true},
	} {
		if got := setByOthers(tt.fields); got != tt.want {
			t.Errorf("%s: %t", tt.reason, got)
		}
	}
	p := &operatorsv1alpha1.InstallPlan{}
	p.Status.AttenuatedServiceAccountRef = &corev1.ObjectReference{Name: "agent", Namespace: "ops"}
	recordAccount(p, &account{name: types.NamespacedName{Namespace: "ops", Name: "agent"}})
	if ref := p.Status.AttenuatedServiceAccountRef; ref.APIVersion != "" {
		t.Errorf("the reference was written: %v", ref)
	}
}
