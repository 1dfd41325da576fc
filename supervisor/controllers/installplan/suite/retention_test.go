package suite_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// TestOldPlansAreCollected finishes a plan beside many old ones.
func TestOldPlansAreCollected(t *testing.T) {
	w := newWorld(t)
	for i := range 8 {
		p := &operatorsv1alpha1.InstallPlan{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: fmt.Sprintf("old-%d", i)},
			Spec:       operatorsv1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{"old"}, Approval: operatorsv1alpha1.ApprovalManual, Generation: i + 1},
		}
		w.Create(p)
		p.Status = operatorsv1alpha1.InstallPlanStatus{Phase: complete, CatalogSources: []string{}}
		if i == 0 {
			p.Status.Phase = asking
		}
		if err := w.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	w.Create(w.group("group"))
	w.supervise(time.Minute)
	w.generation = 9
	w.plan(w.bundle(settings), true, plansteps.MaxInline)
	w.reaches(complete)
	w.Eventually(func(g gomega.Gomega) {
		list := &operatorsv1alpha1.InstallPlanList{}
		g.Expect(w.List(t.Context(), list, client.InNamespace(w.Namespace))).To(gomega.Succeed())
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		g.Expect(names).To(gomega.ConsistOf("old-0", "old-4", "old-5", "old-6", "old-7", "install-lamp"))
	}).Should(gomega.Succeed())
}
