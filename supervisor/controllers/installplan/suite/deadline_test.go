package suite_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// TestManyPlansFailAtTheirDeadline has many plans that fail at the same time.
func TestManyPlansFailAtTheirDeadline(t *testing.T) {
	const plans, window = 25, 15 * time.Second
	w := newWorld(t)
	w.Create(w.group("group"))
	b := w.bundle(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"a key":"b"}}`)
	steps, err := plansteps.Steps(w.Namespace, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.acknowledge = -1
	w.supervise(window)
	for i := range plans {
		p := &operatorsv1alpha1.InstallPlan{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: fmt.Sprintf("install-%d", i)},
			Spec: operatorsv1alpha1.InstallPlanSpec{
				ClusterServiceVersionNames: []string{b.Name}, Approval: operatorsv1alpha1.ApprovalAutomatic, Approved: true, Generation: 100 + i,
			},
		}
		w.Create(p)
		p.Status = operatorsv1alpha1.InstallPlanStatus{Phase: operatorsv1alpha1.InstallPlanPhasePlanning, CatalogSources: []string{"shop"}, Plan: steps}
		w.Expect(w.Status().Update(t.Context(), p)).To(gomega.Succeed())
		// A finished plan to which a Subscription refers is not collected.
		sub := &operatorsv1alpha1.Subscription{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: p.Name}, Spec: &operatorsv1alpha1.SubscriptionSpec{Package: p.Name},
		}
		w.Create(sub)
		sub.Status.LastUpdated = metav1.Now()
		sub.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: p.Namespace, Name: p.Name, UID: p.UID}
		w.Expect(w.Status().Update(t.Context(), sub)).To(gomega.Succeed())
	}
	list := &operatorsv1alpha1.InstallPlanList{}
	ended := map[string]time.Duration{}
	w.Eventually(func(g gomega.Gomega) {
		g.Expect(w.List(t.Context(), list, client.InNamespace(w.Namespace))).To(gomega.Succeed())
		for i := range list.Items {
			p := &list.Items[i]
			if p.Status.Phase != failed {
				continue
			}
			ended[p.Name] = installed(p).LastTransitionTime.Sub(p.Status.StartTime.Time)
			g.Expect(p.Status.Message).To(gomega.HavePrefix("error applying ConfigMap settings of lamp.v1: "))
			g.Expect(strings.HasPrefix(installed(p).Message, strings.TrimSuffix(p.Status.Message, "."))).To(gomega.BeTrue())
		}
		g.Expect(ended).To(gomega.HaveLen(plans))
	}).WithTimeout(6 * window).Should(gomega.Succeed())
	// How late a pass is depends on the machine; TestPlanFailsAtItsDeadline checks the exact times.
	// Plans must not wait for each other's windows: the last plan would then end after ten windows
	// and more.
	for name, after := range ended {
		if after < window || after >= 5*window {
			t.Errorf("%s failed after %s", name, after)
		}
	}
}
