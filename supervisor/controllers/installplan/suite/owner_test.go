package suite_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// TestObjectsOfADeletedVersionAreDeleted deletes the version, which has a finalizer, just
// before a cluster-scoped object is applied.
func TestObjectsOfADeletedVersionAreDeleted(t *testing.T) {
	for _, kind := range []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			w.Create(w.group("group"))
			csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "lamp.v1"}}
			var once sync.Once
			w.beforeApply = func(next string) {
				if next == kind {
					once.Do(func() {
						if err := w.Delete(t.Context(), csv); err != nil {
							t.Error(err)
						}
					})
				}
			}
			b := w.bundle()
			b.Objects[0] = strings.Replace(b.Objects[0], `"permissions"`, `"clusterPermissions"`, 1)
			w.plan(b, true, plansteps.MaxInline)
			w.supervise(time.Hour)
			w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
				return p.Status.Phase == working && strings.Contains(p.Status.Message, "lamp.v1 is being deleted before its plan was complete; the supervisor starts over")
			})
			if kind == "ClusterRoleBinding" {
				// The finalizer deletes objects that existed when the deletion began.
				if err := w.DeleteAllOf(t.Context(), &rbacv1.ClusterRole{}, client.MatchingLabels(plansteps.OwnerLabels("lamp.v1", w.Namespace))); err != nil {
					t.Fatal(err)
				}
			}
			w.outside(0)
			// The controller that removes the finalizer does not run here.
			if err := w.Patch(t.Context(), csv, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
				t.Fatal(err)
			}
			w.reaches(complete)
			w.outside(2)
		})
	}
}

// outside waits until a version owns a number of cluster-scoped objects.
func (w *world) outside(want int) {
	w.T.Helper()
	w.Eventually(func(g gomega.Gomega) {
		owned := client.MatchingLabels(plansteps.OwnerLabels("lamp.v1", w.Namespace))
		roles, bindings := &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}
		g.Expect(w.List(w.T.Context(), roles, owned)).To(gomega.Succeed())
		g.Expect(w.List(w.T.Context(), bindings, owned)).To(gomega.Succeed())
		g.Expect(len(roles.Items) + len(bindings.Items)).To(gomega.Equal(want))
	}).Should(gomega.Succeed())
}
