package operatorgroup

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestAccount(t *testing.T) {
	account := func(uid types.UID) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "cook", UID: uid}}
	}
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "ServiceAccount", Namespace: "kitchen", Name: "cook", UID: "1"}
	theirs := ref.DeepCopy()
	theirs.ResourceVersion = "17"
	cases := map[string]struct {
		reason  string
		name    string
		before  *corev1.ObjectReference
		account *metav1.PartialObjectMetadata
		want    *corev1.ObjectReference
		missing bool
	}{
		"None":    {"no account, no word of one", "", nil, nil, nil, false},
		"Dropped": {"a name that was taken out leaves no reference", "", ref, nil, nil, false},
		"Found":   {"the account exists", "cook", nil, account("1"), ref, false},
		"Kept":    {"a reference of OLM, with a version, is not replaced", "cook", theirs, account("1"), theirs, false},
		"Remade":  {"another account of the name is another account", "cook", &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: "kitchen", Name: "cook", UID: "0"}, account("1"), ref, false},
		"Missing": {"nothing is installed with an account that is not there", "cook", ref, nil, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := group("1")
			g.Spec = operatorsv1.OperatorGroupSpec{ServiceAccountName: tc.name, TargetNamespaces: []string{"kitchen"}}
			g.Status.ServiceAccountRef = tc.before
			got := status(statusInput{Group: &g, Account: tc.account}, noon())
			if diff := cmp.Diff(tc.want, got.ServiceAccountRef); diff != "" {
				t.Errorf("%s\nserviceAccountRef: -want, +got:\n%s", tc.reason, diff)
			}
			condition := apimeta.FindStatusCondition(got.Conditions, operatorsv1.OperatorGroupServiceAccountCondition)
			if (condition != nil) != tc.missing {
				t.Fatalf("%s\ncondition = %+v, want one: %t", tc.reason, condition, tc.missing)
			}
			if tc.missing && (condition.Reason != "ServiceAccountNotFound" || !strings.HasPrefix(condition.Message, "ServiceAccount cook not found")) {
				t.Errorf("%s\ncondition = %+v", tc.reason, condition)
			}
			g.Status = got
			if diff := cmp.Diff(got, status(statusInput{Group: &g, Account: tc.account}, noon().Add(time.Hour))); diff != "" {
				t.Errorf("%s\nan unchanged status was changed:\n%s", tc.reason, diff)
			}
		})
	}
}
