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

// follower prints the changes of Subscriptions.
type follower struct {
	*historian

	// told is the last printed timeline of each Subscription, by name.
	told  map[string]timeline.Timeline
	plans []operatorsv1alpha1.InstallPlan
}

// follow prints what was found, and then the changes, until it is interrupted. Transitions during a
// lost connection are in the log, so none is missed.
func (h *historian) follow(ctx context.Context, found []timeline.Timeline) error {
	f := &follower{historian: h, told: map[string]timeline.Timeline{}}
	if !h.output.ForMachines() {
		if err := h.print(found); err != nil {
			return err
		}
		for i := range found {
			f.told[found[i].Subscription] = found[i]
		}
		if err := h.write("\nFOLLOWING\n"); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		retry, err := f.watch(ctx)
		switch {
		case ctx.Err() != nil:
		case !retry:
			return err
		case err != nil:
			fmt.Fprintf(h.log, "following is interrupted, and tried again: %v\n", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnectDelay):
		}
	}
	return nil
}

// watch prints changes until the connection ends. It reports whether to try again.
func (f *follower) watch(ctx context.Context) (retry bool, err error) {
	options := []client.ListOption{client.InNamespace(f.namespace)}
	if len(f.names) == 1 {
		// The user may have permission to watch only this Subscription.
		options = append(options, client.MatchingFields{"metadata.name": f.names[0]})
	}
	changes, err := f.client.Watch(ctx, &operatorsv1alpha1.SubscriptionList{}, options...)
	if err != nil {
		return !apierrors.IsForbidden(err), f.explain("watch", err)
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		sub, is := change.Object.(*operatorsv1alpha1.Subscription)
		if !is {
			return true, apierrors.FromObject(change.Object)
		}
		if !f.wants(sub.Name) {
			continue
		}
		if err := f.tell(ctx, change.Type, sub); err != nil {
			return false, err
		}
	}
	return true, nil
}

// tell prints the changes of a Subscription.
func (f *follower) tell(ctx context.Context, change watch.EventType, sub *operatorsv1alpha1.Subscription) error {
	if change == watch.Deleted {
		delete(f.told, sub.Name)
		if !f.output.ForMachines() {
			return f.write(sub.Name + "  was deleted\n")
		}
		return nil
	}
	before := f.told[sub.Name]
	if before.UID != sub.UID {
		before = timeline.Timeline{}
	}
	if err := f.learn(ctx, sub); err != nil {
		fmt.Fprintln(f.log, err)
	}
	now := timeline.Of(sub, f.plans, f.program, f.clock.Now())
	f.told[sub.Name] = now
	if !f.output.ForMachines() {
		return f.write(now.News(&before, f.zone))
	}
	for _, record := range now.Records(before.Last()) {
		if err := f.record(record); err != nil {
			return err
		}
	}
	return nil
}

// learn reads the InstallPlans again if one is unknown or has failed. The next steps after a
// failure depend on the steps of the InstallPlan.
func (f *follower) learn(ctx context.Context, sub *operatorsv1alpha1.Subscription) error {
	ref := sub.Status.InstallPlanRef
	failed := sub.Status.GetCondition(operatorsv1alpha1.SubscriptionInstallPlanFailed).Status == corev1.ConditionTrue
	if ref == nil || !failed && slices.ContainsFunc(f.plans, func(p operatorsv1alpha1.InstallPlan) bool { return p.UID == ref.UID }) {
		return nil
	}
	plans, err := f.installPlans(ctx)
	if err == nil {
		f.plans = plans
	}
	return err
}
