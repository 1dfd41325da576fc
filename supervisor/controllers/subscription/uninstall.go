package subscription

import (
	"context"
	"errors"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
)

// uninstaller uninstalls the operators of deleted Subscriptions that ask for it.
type uninstaller struct {
	client client.Client
	live   client.Reader
	events events.EventRecorder
	clock  clock.PassiveClock
}

// uninstall continues the uninstallations of a namespace, and returns when to continue without an
// event. An error of one Subscription does not affect the others.
func (u *uninstaller) uninstall(ctx context.Context, o *namespaceState) (next time.Time, err error) {
	var errs []error
	for _, sub := range o.deleting {
		again, err := u.continueOne(ctx, o, sub)
		retry, err := absorbConflict(err, u.clock.Now())
		next, errs = earliest(next, again, retry), append(errs, err)
	}
	return next, errors.Join(errs...)
}

// syncFinalizers sets the finalizer of Subscriptions whose operator has to be uninstalled with them,
// and removes it from others. It returns the updated Subscriptions and when to retry conflicts. An
// error of one Subscription does not affect the others.
func (u *uninstaller) syncFinalizers(
	ctx context.Context, subs []*operatorsv1alpha1.Subscription,
) (synced []*operatorsv1alpha1.Subscription, next time.Time, err error) {
	var errs []error
	for _, sub := range subs {
		change := controllerutil.RemoveFinalizer
		if uninstalls(sub) {
			change = controllerutil.AddFinalizer
		}
		after, err := u.setFinalizer(ctx, sub, change)
		retry, err := absorbConflict(err, u.clock.Now())
		synced, next, errs = append(synced, after), earliest(next, retry), append(errs, err)
	}
	return synced, next, errors.Join(errs...)
}

// setFinalizer adds or removes the finalizer, and returns the updated Subscription. The write
// replaces the whole list. It must therefore fail if another client has changed the object.
func (u *uninstaller) setFinalizer(
	ctx context.Context, sub *operatorsv1alpha1.Subscription, change func(client.Object, string) bool,
) (*operatorsv1alpha1.Subscription, error) {
	after := sub.DeepCopy()
	if !change(after, api.FinalizerUninstall) {
		return sub, nil
	}
	if err := patch(ctx, u.client, sub, after); err != nil {
		return sub, fmt.Errorf("changing finalizers of Subscription %s/%s: %w", sub.Namespace, sub.Name, err)
	}
	return after, nil
}

// continueOne does the next step of the uninstallation of a Subscription, and writes into the status
// what it waits for. It returns when to continue without an event.
func (u *uninstaller) continueOne(ctx context.Context, o *namespaceState, sub *operatorsv1alpha1.Subscription) (next time.Time, err error) {
	now := u.clock.Now()
	step := nextUninstallStep(o, sub, now)
	if step.record != nil {
		after := sub.DeepCopy()
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, api.AnnotationUninstalls, *step.record)
		if err := patch(ctx, u.client, sub, after); err != nil {
			return step.next, fmt.Errorf("recording on Subscription %s/%s what is uninstalled with it: %w", sub.Namespace, sub.Name, err)
		}
		log.FromContext(ctx).Info("Uninstalling", "subscription", sub.Name, "package", sub.Spec.Package, "with", *step.record)
		return step.next, nil
	}
	if step.done() {
		return step.next, u.finish(ctx, o, sub, step.kept)
	}
	// Write the status before the deletions, which may take long.
	status := *sub.Status.DeepCopy()
	if step.reason != "" {
		status.Conditions = step.conditions(sub, metav1.NewTime(now).Rfc3339Copy())
	}
	after, err := patchStatus(ctx, u.client, sub, status, metav1.NewTime(now).Rfc3339Copy())
	if err != nil {
		return step.next, err
	}
	if after != sub {
		log.FromContext(ctx).Info("Waiting to uninstall", "subscription", sub.Name, "reason", step.reason, "message", step.message)
	}
	return step.next, u.deleteObjects(ctx, step)
}

// deleteObjects deletes the objects of a step, if they are those that were read.
func (u *uninstaller) deleteObjects(ctx context.Context, step uninstallStep) error {
	for _, p := range step.plans {
		if err := u.delete(ctx, p, operatorsv1alpha1.InstallPlanKind); err != nil {
			return err
		}
	}
	for _, csv := range step.versions {
		if err := unmarkWithdrawn(ctx, u.client, csv); err != nil {
			return err
		}
		if err := u.delete(ctx, csv, operatorsv1alpha1.ClusterServiceVersionKind); err != nil {
			return err
		}
	}
	for _, sub := range step.dependents {
		after := sub.DeepCopy()
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, api.AnnotationOnDelete, onDeleteUninstall)
		if controllerutil.AddFinalizer(after, api.FinalizerUninstall) || !uninstalls(sub) {
			if err := patch(ctx, u.client, sub, after); err != nil {
				return fmt.Errorf("having the operator of Subscription %s/%s uninstalled with it: %w", sub.Namespace, sub.Name, err)
			}
		}
		if err := u.delete(ctx, after, operatorsv1alpha1.SubscriptionKind); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes an object, unless another object has its name now.
func (u *uninstaller) delete(ctx context.Context, object client.Object, kind string) error {
	err := apply.DeleteIf(ctx, u.client, object, apply.SameUID(object))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("uninstalling: deleting %s %s/%s: %w", kind, object.GetNamespace(), object.GetName(), err)
	}
	log.FromContext(ctx).Info("Deleted object to uninstall", "kind", kind, "object", client.ObjectKeyFromObject(object).String())
	return nil
}

// finish ends the uninstallation of a Subscription. It first checks that the caches lack no object
// of its operator. kept states why the operator stays; empty where it is uninstalled.
func (u *uninstaller) finish(ctx context.Context, o *namespaceState, sub *operatorsv1alpha1.Subscription, kept string) error {
	if kept == "" {
		if err := verifyCache(ctx, u.live, o); err != nil {
			return err
		}
	}
	if _, err := u.setFinalizer(ctx, sub, controllerutil.RemoveFinalizer); err != nil {
		return err
	}
	if kept != "" {
		log.FromContext(ctx).Info("Uninstalling nothing", "subscription", sub.Name, "because", kept)
		u.events.Eventf(sub, nil, corev1.EventTypeNormal, "NotUninstalled", "Uninstall", "the operator stays: %s", kept)
		return nil
	}
	log.FromContext(ctx).Info("Uninstalled", "subscription", sub.Name, "package", sub.Spec.Package)
	u.events.Eventf(sub, nil, corev1.EventTypeNormal, "Uninstalled", "Uninstall", "package %s is uninstalled", sub.Spec.Package)
	return nil
}
