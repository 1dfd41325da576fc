package installplan

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestSurvey has a namespace with one OperatorGroup, and the ServiceAccount cook.
func TestSurvey(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), operatorsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
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
		want   site
	}{
		"All":           {"a group without targets is for all namespaces", operatorsv1.OperatorGroupSpec{}, site{unbounded: true}},
		"EmptySelector": {"an empty selector selects all namespaces", selector(metav1.LabelSelector{}), site{unbounded: true}},
		"Named":         {"the group lists its namespaces", operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"kitchen"}}, site{}},
		"Labels":        {"the group selects by labels", selector(metav1.LabelSelector{MatchLabels: map[string]string{"tier": "hot"}}), site{}},
		"Expressions":   {"the group selects by expressions", selector(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{exists}}), site{}},
		"NamedAndSelector": {
			"listed namespaces count before an empty selector",
			operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"kitchen"}, Selector: &metav1.LabelSelector{}},
			site{},
		},
		"Account": {"the account bounds a group for all namespaces", operatorsv1.OperatorGroupSpec{ServiceAccountName: "cook"}, site{account: named("cook", "uid-cook")}},
		"NoAccount": {
			"the account does not exist",
			operatorsv1.OperatorGroupSpec{ServiceAccountName: "waiter"},
			site{problem: "please make sure the service account exists. sa=waiter operatorgroup=kitchen/own", account: named("waiter", "")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
				&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "own"}, Spec: tc.spec},
				&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "cook", UID: "uid-cook"}},
			).Build()
			got, err := (&Reconciler{client: c}).survey(t.Context(), c, "kitchen")
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(site{}, account{})); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
