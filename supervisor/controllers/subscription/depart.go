package subscription

import (
	"context"
	"errors"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
)

// attend updates the finalizers of Subscriptions and continues uninstallations. It sets the
// finalizer where the operator has to be uninstalled with the Subscription, and removes it
// elsewhere. An error of one Subscription does not affect the others.
func (r *Reconciler) attend(ctx context.Context, o *observation) error {
	var errs []error
	for i, sub := range o.subscriptions {
		change := controllerutil.RemoveFinalizer
		if uninstalls(sub) {
			change = controllerutil.AddFinalizer
		}
		after, err := r.setFinalizer(ctx, sub, change)
		o.subscriptions[i] = after
		errs = append(errs, r.unlessConflict(o, err))
	}
	for _, sub := range o.departures {
		errs = append(errs, r.unlessConflict(o, r.depart(ctx, o, sub)))
	}
	return errors.Join(errs...)
}

// setFinalizer adds or removes the finalizer, and returns the updated Subscription. The write
// replaces the whole list. It must therefore fail if another client has changed the object.
func (r *Reconciler) setFinalizer(
	ctx context.Context, sub *operatorsv1alpha1.Subscription, change func(client.Object, string) bool,
) (*operatorsv1alpha1.Subscription, error) {
	after := sub.DeepCopy()
	if !change(after, api.FinalizerUninstall) {
		return sub, nil
	}
	if err := r.patch(ctx, sub, after); err != nil {
		return sub, fmt.Errorf("changing finalizers of Subscription %s/%s: %w", sub.Namespace, sub.Name, err)
	}
	return after, nil
}

// patch writes the changes of an object, and fails if the object has changed since it was read.
func (r *Reconciler) patch(ctx context.Context, before, after client.Object) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return r.client.Patch(ctx, after, patch, client.FieldOwner(api.FieldManager)) //nolint:wrapcheck // wrapped by those who know what it was for
}

// depart does the next step of the uninstallation of a Subscription, and writes into the status
// what it waits for.
func (r *Reconciler) depart(ctx context.Context, o *observation, sub *operatorsv1alpha1.Subscription) error {
	now := r.clock.Now()
	d := o.departure(sub, now)
	o.soonest(d.again)
	if d.record != nil {
		after := sub.DeepCopy()
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, api.AnnotationUninstalls, *d.record)
		if err := r.patch(ctx, sub, after); err != nil {
			return fmt.Errorf("noting on Subscription %s/%s what goes with it: %w", sub.Namespace, sub.Name, err)
		}
		log.FromContext(ctx).Info("Uninstalling", "subscription", sub.Name, "package", sub.Spec.Package, "with", *d.record)
		return nil
	}
	if len(d.plans) == 0 && d.reason == "" {
		return r.letGo(ctx, o, sub, d.why)
	}
	// Write the status before the deletions, which may take long.
	status := *sub.Status.DeepCopy()
	if d.reason != "" {
		status.Conditions = d.conditions(sub, metav1.NewTime(now).Rfc3339Copy())
	}
	after, err := r.write(ctx, sub, status, metav1.NewTime(now).Rfc3339Copy())
	if err != nil {
		return err
	}
	if after != sub {
		log.FromContext(ctx).Info("Waiting to uninstall", "subscription", sub.Name, "reason", d.reason, "message", d.waits)
	}
	return r.dismiss(ctx, d)
}

// conditions returns the conditions of a Subscription with the state of its uninstallation. It
// drops the condition about newer versions.
func (d *departure) conditions(sub *operatorsv1alpha1.Subscription, now metav1.Time) []operatorsv1alpha1.SubscriptionCondition {
	before := sub.Status.Conditions
	kept := slices.DeleteFunc(retained(before, owned), func(c operatorsv1alpha1.SubscriptionCondition) bool {
		return c.Type == api.ConditionUninstalling || c.Type == api.ConditionNewerVersionHeld
	})
	return mergeConditions(before, append(kept, isTrue(api.ConditionUninstalling, d.reason, d.waits)), now)
}

// dismiss deletes the objects of a step, if they are those that were read.
func (r *Reconciler) dismiss(ctx context.Context, d departure) error {
	for _, p := range d.plans {
		if err := r.remove(ctx, p, "InstallPlan"); err != nil {
			return err
		}
	}
	for _, csv := range d.versions {
		if err := r.keep(ctx, csv); err != nil {
			return err
		}
		if err := r.remove(ctx, csv, operatorsv1alpha1.ClusterServiceVersionKind); err != nil {
			return err
		}
	}
	for _, sub := range d.dependents {
		after := sub.DeepCopy()
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, api.AnnotationOnDelete, onDeleteUninstall)
		if controllerutil.AddFinalizer(after, api.FinalizerUninstall) || !uninstalls(sub) {
			if err := r.patch(ctx, sub, after); err != nil {
				return fmt.Errorf("having the operator of Subscription %s/%s go with it: %w", sub.Namespace, sub.Name, err)
			}
		}
		if err := r.remove(ctx, after, operatorsv1alpha1.SubscriptionKind); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes an object, unless another object has its name now.
func (r *Reconciler) remove(ctx context.Context, object client.Object, kind string) error {
	uid := object.GetUID()
	err := r.client.Delete(ctx, object, client.Preconditions{UID: &uid})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("uninstalling: deleting %s %s/%s: %w", kind, object.GetNamespace(), object.GetName(), err)
	}
	log.FromContext(ctx).Info("Deleted object to uninstall", "kind", kind, "object", client.ObjectKeyFromObject(object).String())
	return nil
}

// letGo ends the uninstallation of a Subscription. It first checks that the caches lack no object
// of its operator.
func (r *Reconciler) letGo(ctx context.Context, o *observation, sub *operatorsv1alpha1.Subscription, why string) error {
	if why == "" {
		if err := r.upToDate(ctx, o); err != nil {
			return err
		}
	}
	if _, err := r.setFinalizer(ctx, sub, controllerutil.RemoveFinalizer); err != nil {
		return err
	}
	if why != "" {
		log.FromContext(ctx).Info("Uninstalling nothing", "subscription", sub.Name, "because", why)
		r.recorder.Eventf(sub, nil, corev1.EventTypeNormal, "NotUninstalled", "Uninstall", "the operator stays: %s", why)
		return nil
	}
	log.FromContext(ctx).Info("Uninstalled", "subscription", sub.Name, "package", sub.Spec.Package)
	r.recorder.Eventf(sub, nil, corev1.EventTypeNormal, "Uninstalled", "Uninstall", "package %s is uninstalled", sub.Spec.Package)
	return nil
}
