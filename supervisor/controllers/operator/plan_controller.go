package operator

import (
	"context"
	"fmt"
	"sync"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// planReconciler removes the label of a Subscription's package from InstallPlans that a newer one
// has replaced.
type planReconciler struct {
	client client.Client
	// cache reads Subscriptions even if it lacks a part of them.
	cache client.Reader
	// removed holds the plans whose label was removed, by Subscription. If another client restores
	// the label, the controller does not remove it again. Otherwise, both would write without end.
	mu      sync.Mutex
	removed map[types.NamespacedName]map[types.UID]bool
}

// Reconcile handles the plans of one Subscription.
func (r *planReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	sub := &operatorsv1alpha1.Subscription{}
	err := r.cache.Get(ctx, req.NamespacedName, sub, readOnly)
	if apierrors.IsNotFound(err) {
		r.forget(req.NamespacedName, nil)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("getting Subscription %s: %w", req.NamespacedName, err)
	}
	subscriptions, plans := &operatorsv1alpha1.SubscriptionList{}, &operatorsv1alpha1.InstallPlanList{}
	for _, list := range []client.ObjectList{subscriptions, plans} {
		if err := r.client.List(ctx, list, client.InNamespace(sub.Namespace), readOnly); err != nil {
			return ctrl.Result{}, fmt.Errorf("listing Subscriptions and InstallPlans in namespace %s: %w", sub.Namespace, err)
		}
	}
	r.forget(req.NamespacedName, plans.Items)
	for _, p := range superseded(sub, subscriptions.Items, plans.Items) {
		if err := r.removeLabel(ctx, req.NamespacedName, sub, p); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

func (r *planReconciler) removeLabel(
	ctx context.Context, key types.NamespacedName, sub *operatorsv1alpha1.Subscription, p *operatorsv1alpha1.InstallPlan,
) error {
	if !r.recordRemoval(key, p.UID) {
		return nil
	}
	label := plansteps.ComponentLabel(sub.Spec.Package, sub.Namespace)
	k := kind{gvk: operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.InstallPlanKind)}
	if err := patchLabels(ctx, r.client, k, p, map[string]*string{label: nil}); err != nil {
		r.forgetRemoval(key, p.UID)
		return err
	}
	logf.FromContext(ctx).Info("Removed the component label from a superseded InstallPlan", "installPlan", p.Name, "label", label)
	return nil
}

// recordRemoval records the removal of the label of a plan for a Subscription and reports whether it is the first one.
func (r *planReconciler) recordRemoval(key types.NamespacedName, uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.removed[key][uid] {
		return false
	}
	if r.removed[key] == nil {
		r.removed[key] = map[types.UID]bool{}
	}
	r.removed[key][uid] = true
	return true
}

// forgetRemoval deletes the record of a removal.
func (r *planReconciler) forgetRemoval(key types.NamespacedName, uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.removed[key], uid)
}

// forget deletes the records of plans that are gone.
func (r *planReconciler) forget(key types.NamespacedName, present []operatorsv1alpha1.InstallPlan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := map[types.UID]bool{}
	for i := range present {
		if r.removed[key][present[i].UID] {
			kept[present[i].UID] = true
		}
	}
	if len(kept) == 0 {
		delete(r.removed, key)
		return
	}
	r.removed[key] = kept
}

// labellingSubscriptions returns requests for the Subscriptions whose label a plan has.
func (r *planReconciler) labellingSubscriptions(ctx context.Context, o client.Object) []reconcile.Request {
	if len(componentKeys(o.GetLabels())) == 0 {
		return nil
	}
	var list operatorsv1alpha1.SubscriptionList
	if err := r.client.List(ctx, &list, client.InNamespace(o.GetNamespace()), readOnly); err != nil {
		// Reading the cache only fails while it stops.
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		sub := &list.Items[i]
		if sub.Spec == nil {
			continue
		}
		if _, labelled := o.GetLabels()[plansteps.ComponentLabel(sub.Spec.Package, sub.Namespace)]; labelled {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(sub)})
		}
	}
	return requests
}
