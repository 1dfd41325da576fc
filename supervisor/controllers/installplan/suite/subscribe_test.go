package suite_test

import (
	"slices"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// subscribing creates the plan of a bundle with a step for the Subscription of the package tray.
func (w *world) subscribing(installPlan string) {
	w.T.Helper()
	w.plan(w.bundle(settings), false, plansteps.MaxInline)
	step, err := plansteps.SubscriptionStep(w.Namespace, installPlan, plansteps.Bundle{
		Name: "tray.v1", Package: "tray", Channel: "stable", Catalog: types.NamespacedName{Namespace: "olm", Name: "shop"},
	})
	if err != nil {
		w.T.Fatal(err)
	}
	p := w.read()
	p.Status.Plan = append(p.Status.Plan, step)
	if err := w.Status().Update(w.T.Context(), p); err != nil {
		w.T.Fatal(err)
	}
	p.Spec.Approved = true
	if err := w.Update(w.T.Context(), p); err != nil {
		w.T.Fatal(err)
	}
}

// TestSubscriptionIsMadeOnce checks when a plan creates the Subscription of a package that an
// operator needs.
func TestSubscriptionIsMadeOnce(t *testing.T) {
	for _, tt := range []struct {
		reason string
		there  string // the package of an existing Subscription
		as     string // its name
		want   operatorsv1alpha1.StepStatus
		list   []string
	}{
		{reason: "no Subscription exists", want: operatorsv1alpha1.StepStatusCreated, list: []string{"tray-stable-shop-olm"}},
		{reason: "a user has one for another package", there: "lamp", as: "mine", want: operatorsv1alpha1.StepStatusCreated, list: []string{"mine", "tray-stable-shop-olm"}},
		{reason: "a user has one by now", there: "tray", as: "mine", want: operatorsv1alpha1.StepStatusPresent, list: []string{"mine"}},
		{reason: "the name is taken", there: "lamp", as: "tray-stable-shop-olm", want: operatorsv1alpha1.StepStatusPresent, list: []string{"tray-stable-shop-olm"}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t)
			w.Create(w.group("group"))
			if tt.there != "" {
				sub := &operatorsv1alpha1.Subscription{Spec: &operatorsv1alpha1.SubscriptionSpec{CatalogSource: "shop", CatalogSourceNamespace: "olm", Package: tt.there}}
				sub.Namespace, sub.Name = w.Namespace, tt.as
				w.Create(sub)
			}
			w.subscribing("install-lamp")
			w.supervise(time.Minute)
			p := w.reaches(complete)
			if got := p.Status.Plan[len(p.Status.Plan)-1].Status; got != tt.want {
				t.Errorf("step %s, want %s", got, tt.want)
			}
			list := &operatorsv1alpha1.SubscriptionList{}
			if err := w.List(t.Context(), list, client.InNamespace(w.Namespace)); err != nil {
				t.Fatal(err)
			}
			var names []string
			for i := range list.Items {
				names = append(names, list.Items[i].Name)
			}
			if !slices.Equal(names, tt.list) {
				t.Errorf("Subscriptions %v, want %v", names, tt.list)
			}
		})
	}
}

// TestForeignSubscriptionIsRefused has a step for a Subscription that the plan did not generate. The supervisor
// has created the plan.
func TestForeignSubscriptionIsRefused(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"))
	w.subscribing("install-other")
	p := w.read()
	p.Annotations = map[string]string{api.AnnotationApproval: string(operatorsv1alpha1.ApprovalManual)}
	if err := w.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.supervise(time.Minute)
	p = w.reaches(failed)
	if got := p.Status.Plan[len(p.Status.Plan)-1].Status; got != operatorsv1alpha1.StepStatusUnsupportedResource {
		t.Errorf("step %s", got)
	}
}
