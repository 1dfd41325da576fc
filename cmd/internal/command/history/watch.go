package history

import (
	"context"
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/command/history/timeline"
)

// reconnectDelay is the pause before a watch that ended is started again.
const reconnectDelay = time.Second

// watcher prints the changes of Subscriptions.
type watcher struct {
	*runner

	// printed is the last printed timeline of each Subscription, by name.
	printed map[string]timeline.Timeline
	plans   []operatorsv1alpha1.InstallPlan
}

// watchChanges prints the timelines, and then their changes, until it is interrupted. Transitions during a
// lost connection are in the log, so none is missed.
func (r *runner) watchChanges(ctx context.Context, found []timeline.Timeline) error {
	w := &watcher{runner: r, printed: map[string]timeline.Timeline{}}
	if !r.output.ForMachines() {
		if err := r.print(found); err != nil {
			return err
		}
		for i := range found {
			w.printed[found[i].Subscription] = found[i]
		}
		if err := r.write("\nFOLLOWING\n"); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		retry, err := w.watch(ctx)
		switch {
		case ctx.Err() != nil:
		case !retry:
			return err
		case err != nil:
			fmt.Fprintf(r.log, "the watch was interrupted; retrying: %v\n", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnectDelay):
		}
	}
	return nil
}

// watch prints changes until the connection ends. It reports whether to try again.
func (w *watcher) watch(ctx context.Context) (retry bool, err error) {
	options := []client.ListOption{client.InNamespace(w.namespace)}
	if len(w.names) == 1 {
		// The user may have permission to watch only this Subscription.
		options = append(options, client.MatchingFields{"metadata.name": w.names[0]})
	}
	changes, err := w.client.Watch(ctx, &operatorsv1alpha1.SubscriptionList{}, options...)
	if err != nil {
		return !apierrors.IsForbidden(err), w.readError(err)
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		sub, is := change.Object.(*operatorsv1alpha1.Subscription)
		if !is {
			return true, apierrors.FromObject(change.Object)
		}
		if !w.isRequested(sub.Name) {
			continue
		}
		if err := w.printChange(ctx, change.Type, sub); err != nil {
			return false, err
		}
	}
	return true, nil
}

// printChange prints the changes of a Subscription.
func (w *watcher) printChange(ctx context.Context, change watch.EventType, sub *operatorsv1alpha1.Subscription) error {
	if change == watch.Deleted {
		delete(w.printed, sub.Name)
		if !w.output.ForMachines() {
			return w.write(sub.Name + "  was deleted\n")
		}
		return nil
	}
	before := w.printed[sub.Name]
	if before.UID != sub.UID {
		before = timeline.Timeline{}
	}
	if err := w.refreshPlans(ctx, sub); err != nil {
		fmt.Fprintln(w.log, err)
	}
	now := timeline.Of(sub, w.plans, w.program, w.clock.Now())
	w.printed[sub.Name] = now
	if !w.output.ForMachines() {
		return w.write(now.Changes(&before, w.zone))
	}
	for _, record := range now.Records(before.Last()) {
		if err := w.record(record); err != nil {
			return err
		}
	}
	return nil
}

// refreshPlans reads the InstallPlans again if one is unknown or has failed. The next steps after a
// failure depend on the steps of the InstallPlan.
func (w *watcher) refreshPlans(ctx context.Context, sub *operatorsv1alpha1.Subscription) error {
	ref := sub.Status.InstallPlanRef
	failed := sub.Status.GetCondition(operatorsv1alpha1.SubscriptionInstallPlanFailed).Status == corev1.ConditionTrue
	if ref == nil || !failed && slices.ContainsFunc(w.plans, func(p operatorsv1alpha1.InstallPlan) bool { return p.UID == ref.UID }) {
		return nil
	}
	plans, err := w.installPlans(ctx)
	if err == nil {
		w.plans = plans
	}
	return err
}
