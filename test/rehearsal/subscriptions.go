package main

import (
	"context"
	"fmt"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/failover"
	"github.com/chandlery/chandlery/test/oracle/olmpeer"
)

// quota prevents the objects of an InstallPlan that is under way.
const quota = "rehearsal"

// subscriptions installs operators through Subscriptions.
type subscriptions struct{ client client.Client }

// subscribe creates the namespaces of an operator, its OperatorGroup and its Subscription.
func (s *subscriptions) subscribe(ctx context.Context, o *operator) error {
	if o.subscription.none {
		return nil
	}
	var all []client.Object
	if o.namespace != allNamespaces {
		for _, name := range slices.Compact(append([]string{o.namespace}, o.targets...)) {
			all = append(all, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		all = append(all, &operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "group"}, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: o.targets},
		})
	}
	approval := operatorsv1alpha1.ApprovalAutomatic
	if o.subscription.manual {
		approval = operatorsv1alpha1.ApprovalManual
	}
	all = append(all, &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: o.name},
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			Package: o.name, Channel: "stable", CatalogSource: catalogName, CatalogSourceNamespace: olmpeer.Namespace,
			StartingCSV: o.version(installed), InstallPlanApproval: approval, Config: o.subscription.config,
		},
	})
	for _, one := range all {
		if err := s.client.Create(ctx, one); err != nil {
			return fmt.Errorf("creating %T %s: %w", one, one.GetName(), err)
		}
	}
	return nil
}

// awaitInstalled waits until an operator has its final state. It approves the first InstallPlan of an operator whose
// updates wait for approval, and then waits for the second.
func (s *subscriptions) awaitInstalled(ctx context.Context, o *operator) error {
	want := operatorsv1alpha1.CSVPhaseSucceeded
	if o.failed {
		want = operatorsv1alpha1.CSVPhaseFailed
	}
	return failover.Eventually(ctx, "operator "+o.name+" ("+o.shape+") to be "+string(want), func(ctx context.Context) string {
		if o.subscription.manual {
			if left := s.approve(ctx, o); left != "" {
				return left
			}
		}
		v := &operatorsv1alpha1.ClusterServiceVersion{}
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: o.namespace, Name: o.version(installed)}, v); err != nil {
			return err.Error()
		}
		if v.Status.Phase != want {
			return fmt.Sprintf("%s: %s: %s", v.Status.Phase, v.Status.Reason, v.Status.Message)
		}
		return s.unfollowed(ctx, o)
	})
}

// unfollowed returns what the Subscription of an operator still lacks.
func (s *subscriptions) unfollowed(ctx context.Context, o *operator) string {
	subs := &operatorsv1alpha1.SubscriptionList{}
	if err := s.client.List(ctx, subs, client.InNamespace(o.namespace)); err != nil {
		return err.Error()
	}
	want := operatorsv1alpha1.SubscriptionState(operatorsv1alpha1.SubscriptionStateAtLatest)
	if o.subscription.manual {
		want = operatorsv1alpha1.SubscriptionStateUpgradePending
	}
	for i := range subs.Items {
		sub := &subs.Items[i]
		if sub.Spec.Package == o.name && (sub.Status.InstalledCSV != o.version(installed) || sub.Status.State != want) {
			return fmt.Sprintf("Subscription %s is %s with %q", sub.Name, sub.Status.State, sub.Status.InstalledCSV)
		}
	}
	return ""
}

// approve approves the InstallPlan of the first version.
func (s *subscriptions) approve(ctx context.Context, o *operator) string {
	plans := &operatorsv1alpha1.InstallPlanList{}
	if err := s.client.List(ctx, plans, client.InNamespace(o.namespace)); err != nil {
		return err.Error()
	}
	for i := range plans.Items {
		p := &plans.Items[i]
		if p.Spec.Approved || !slices.Contains(p.Spec.ClusterServiceVersionNames, o.version(installed)) {
			continue
		}
		if err := s.client.Patch(ctx, p, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"approved":true}}`))); err != nil {
			return err.Error()
		}
	}
	return ""
}

// beginLate subscribes to an operator whose InstallPlan cannot end yet, and waits until the InstallPlan is under way.
func (s *subscriptions) beginLate(ctx context.Context, o *operator) error {
	limit := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: quota},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/poddisruptionbudgets.policy": resource.MustParse("0")}},
	}
	if err := s.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.namespace}}); err != nil {
		return fmt.Errorf("creating namespace %s: %w", o.namespace, err)
	}
	if err := s.client.Create(ctx, limit); err != nil {
		return fmt.Errorf("limiting %s: %w", o.namespace, err)
	}
	err := failover.Eventually(ctx, "the quota of "+o.namespace, func(ctx context.Context) string {
		if err := s.client.Get(ctx, client.ObjectKeyFromObject(limit), limit); err != nil {
			return err.Error()
		}
		if len(limit.Status.Hard) == 0 {
			return "it has no status"
		}
		return ""
	})
	if err != nil {
		return err
	}
	if err := s.client.Create(ctx, &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "group"}, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: o.targets},
	}); err != nil {
		return fmt.Errorf("creating an OperatorGroup in %s: %w", o.namespace, err)
	}
	if err := s.client.Create(ctx, &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: o.name},
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			Package: o.name, Channel: "stable", CatalogSource: catalogName, CatalogSourceNamespace: olmpeer.Namespace,
		},
	}); err != nil {
		return fmt.Errorf("subscribing to %s: %w", o.name, err)
	}
	return failover.Eventually(ctx, "the InstallPlan of "+o.name+" to be under way", func(ctx context.Context) string {
		plans := &operatorsv1alpha1.InstallPlanList{}
		if err := s.client.List(ctx, plans, client.InNamespace(o.namespace)); err != nil {
			return err.Error()
		}
		if !slices.ContainsFunc(plans.Items, func(p operatorsv1alpha1.InstallPlan) bool {
			return p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseInstalling
		}) {
			return "no InstallPlan is Installing"
		}
		return ""
	})
}

// endLate permits an InstallPlan under way to end, and waits for the operator.
func (s *subscriptions) endLate(ctx context.Context, o *operator) error {
	limit := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: quota}}
	if err := s.client.Delete(ctx, limit); err != nil {
		return fmt.Errorf("removing the quota of %s: %w", o.namespace, err)
	}
	return s.awaitInstalled(ctx, o)
}
