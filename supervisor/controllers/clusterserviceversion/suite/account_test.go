package suite_test

import (
	"testing"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDeploymentsHaveTheRightsOfTheGroupsAccount checks that a version runs only what the account
// of its OperatorGroup may run.
func TestDeploymentsHaveTheRightsOfTheGroupsAccount(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	group := w.group("own", w.Namespace)
	group.Spec.ServiceAccountName = "weak"
	in := metav1.ObjectMeta{Namespace: w.Namespace, Name: "weak"}
	w.Create(group, &corev1.ServiceAccount{ObjectMeta: in})
	csv := w.kettle("kettle.v1")
	w.Create(csv)
	failed := w.reaches("kettle.v1", operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVReasonComponentFailedNoRetry)
	w.says(failed, "install strategy failed: install strategy failed: ", `cannot create resource "deployments"`)
	accountRefused(w, failed)
	w.absent(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "kettle"}})
	w.Expect(w.Delete(t.Context(), csv)).To(gomega.Succeed())
	w.EventuallyGone(csv)

	w.Create(
		&rbacv1.Role{ObjectMeta: in, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"create", "update"}}}},
		&rbacv1.RoleBinding{
			ObjectMeta: in, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "weak"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.Namespace, Name: "weak"}},
		})
	w.Create(w.kettle("kettle.v1"))
	w.succeeds("kettle.v1")
}
