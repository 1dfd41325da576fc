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

// reconnectDelay is the pause before a watch that ended is begun again.
const reconnectDelay = time.Second

// follower is a historian that goes on.
type follower struct {
	*historian

	// told is the last that was told of each Subscription, by its name.
	told  map[string]timeline.Timeline
	plans []operatorsv1alpha1.InstallPlan
}

// follow prints what was found, and then what changes, until it is interrupted. What
// happens while there is no connection is in the ledger, so that nothing is missed.
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

// watch tells of changes until the connection ends. It says whether to try again.
func (f *follower) watch(ctx context.Context) (retry bool, err error) {
	options := []client.ListOption{client.InNamespace(f.namespace)}
	if len(f.names) == 1 {
		// Somebody may have the right to watch just this one.
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

// tell prints what is new about a Subscription.
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

// learn reads the InstallPlans anew when there is one that is not known, or one that
// failed: what can be done about it depends on what is left of it.
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
