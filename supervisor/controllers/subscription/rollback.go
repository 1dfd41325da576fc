package subscription

import (
	"context"
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
)

// rollbackWriter prepares rollbacks of Subscriptions to older versions.
type rollbackWriter struct {
	client  client.Client
	checker *rollbackChecker
	backOff *checkBackOff
	events  events.EventRecorder
	clock   clock.PassiveClock
}

// prepare checks whether Subscriptions may be rolled back, withdraws versions that never worked, and
// removes each spec.replaces that contradicts a rollback. It returns the decisions with the blockers
// and failures that concern them, and when to continue without an event.
func (w *rollbackWriter) prepare(ctx context.Context, o *namespaceState, decisions []*decision) ([]*decision, time.Time) {
	prepared := make([]*decision, 0, len(decisions))
	var next time.Time
	for _, d := range decisions {
		d, again := w.prepareOne(ctx, o, d)
		prepared, next = append(prepared, d), earliest(next, again)
	}
	return prepared, earliest(next, w.unmark(ctx, o.versions, prepared))
}

// prepareOne prepares the rollback of one Subscription.
func (w *rollbackWriter) prepareOne(ctx context.Context, o *namespaceState, d *decision) (*decision, time.Time) {
	blockers, again, err := w.check(ctx, o, d)
	switch {
	case err != nil:
		d = d.withoutRollback(&planError{err: err})
	case len(blockers) > 0:
		d = d.withBlockers(blockers)
	}
	if err := w.withdraw(ctx, d); err != nil {
		d = d.withoutRollback(&planError{err: err})
	}
	for _, csv := range d.replacing() {
		if err := w.removeReplaces(ctx, csv, d.install.Bundle); err != nil {
			d = d.failed(&planError{err: err})
			break
		}
	}
	return d, again
}

// check returns the blockers of the version that a Subscription is pinned to, and when to check
// again; none if it may be installed.
func (w *rollbackWriter) check(ctx context.Context, o *namespaceState, d *decision) (blockers []string, again time.Time, err error) {
	key, now := d.rollbackKey(), w.clock.Now()
	if d.withdraw != nil || d.olderVersion() != nil {
		if blockers, again = w.backOff.last(d.subscription, key, now); len(blockers) > 0 {
			return blockers, again, nil
		}
	}
	if blockers, err = w.checker.check(ctx, o, d); err != nil {
		return nil, time.Time{}, err
	}
	if len(blockers) > 0 {
		log.FromContext(ctx).Info("Not going back", "subscription", d.subscription.Name, "to", pinOf(d.subscription), "because", blockers)
	}
	return blockers, w.backOff.record(d.subscription, key, blockers, now), nil
}

// withdraw deletes a version that never worked, and leaves its custom resources. A version that
// begins to work has another resource version, and stays.
func (w *rollbackWriter) withdraw(ctx context.Context, d *decision) error {
	csv := d.withdraw
	if csv == nil || !csv.DeletionTimestamp.IsZero() {
		return nil
	}
	purpose := api.WithdrawnToReturn
	if d.fallback != nil {
		purpose = api.WithdrawnToInstall
	}
	if csv.Annotations[api.AnnotationWithdrawn] != purpose {
		before := csv.DeepCopy()
		metav1.SetMetaDataAnnotation(&csv.ObjectMeta, api.AnnotationWithdrawn, purpose)
		if err := patch(ctx, w.client, before, csv); err != nil {
			return fmt.Errorf("keeping the custom resources of ClusterServiceVersion %s/%s: %w", csv.Namespace, csv.Name, err)
		}
	}
	if err := apply.DeleteIf(ctx, w.client, csv, apply.SameVersion(csv)); err != nil {
		return fmt.Errorf("deleting ClusterServiceVersion %s/%s, which never worked, to go back to %s: %w", csv.Namespace, csv.Name, pinOf(d.subscription), err)
	}
	log.FromContext(ctx).Info("Withdrew version", "subscription", d.subscription.Name, "version", csv.Name, "pinnedTo", pinOf(d.subscription))
	w.events.Eventf(d.subscription, nil, corev1.EventTypeNormal, "Withdrawn", "RollBack",
		"%s never worked; the supervisor deletes it to return to %s", csv.Name, pinOf(d.subscription))
	return nil
}

// removeReplaces removes spec.replaces from a version that the replaced version will replace.
func (w *rollbackWriter) removeReplaces(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, from string) error {
	after := csv.DeepCopy()
	after.Spec.Replaces = ""
	if err := patch(ctx, w.client, csv, after); err != nil {
		return fmt.Errorf("removing spec.replaces from ClusterServiceVersion %s/%s, which %s will replace: %w", csv.Namespace, csv.Name, from, err)
	}
	csv.Spec.Replaces, csv.ResourceVersion = "", after.ResourceVersion
	log.FromContext(ctx).Info("Removed spec.replaces from version", "version", csv.Name, "replaces", from)
	return nil
}

// unmark removes the mark from versions that stay although they were marked as withdrawn. A later
// deletion would otherwise leave their custom resources. It returns when to retry failures.
func (w *rollbackWriter) unmark(ctx context.Context, versions []*operatorsv1alpha1.ClusterServiceVersion, decisions []*decision) time.Time {
	var next time.Time
	for _, csv := range notWithdrawn(versions, decisions) {
		if err := unmarkWithdrawn(ctx, w.client, csv); err != nil {
			log.FromContext(ctx).Error(err, "Not keeping a version", "version", csv.Name)
			next = w.clock.Now().Add(retryAfter)
		}
	}
	return next
}

// notWithdrawn returns the versions that stay although they were marked as withdrawn. They began to
// work, or the pin changed, before their deletion.
func notWithdrawn(versions []*operatorsv1alpha1.ClusterServiceVersion, decisions []*decision) []*operatorsv1alpha1.ClusterServiceVersion {
	return slices.DeleteFunc(slices.Clone(versions), func(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
		withdrawn := slices.ContainsFunc(decisions, func(d *decision) bool { return d.withdraw != nil && d.withdraw.Name == csv.Name })
		return withdrawn || csv.Annotations[api.AnnotationWithdrawn] == "" || !csv.DeletionTimestamp.IsZero()
	})
}

// unmarkWithdrawn removes the mark of a withdrawn version.
func unmarkWithdrawn(ctx context.Context, c client.Client, csv *operatorsv1alpha1.ClusterServiceVersion) error {
	if csv.Annotations[api.AnnotationWithdrawn] == "" || !csv.DeletionTimestamp.IsZero() {
		return nil
	}
	before := csv.DeepCopy()
	delete(csv.Annotations, api.AnnotationWithdrawn)
	if err := patch(ctx, c, before, csv); err != nil {
		return fmt.Errorf("removing annotation %s from ClusterServiceVersion %s/%s, which stays: %w", api.AnnotationWithdrawn, csv.Namespace, csv.Name, err)
	}
	return nil
}
