package subscription

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/informer"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

const (
	// maxWriters is how many Subscriptions of a namespace are written at once.
	maxWriters = 8
	// largeTimeout is how long a pass writes large Subscriptions, one at a time. The API server takes
	// as long for one of them as for many others, and those of one namespace must not delay
	// installations in others.
	largeTimeout = 2 * time.Second
)

// recorder writes the transition log of each Subscription, and then its status.
type recorder struct {
	client  client.Client
	live    client.Reader
	tracker *tracker
	lag     cacheLag
	events  events.EventRecorder
	clock   clock.PassiveClock
}

// result is the result of a write of a Subscription.
type result struct {
	// subscription is the Subscription after the last write that succeeded.
	subscription *operatorsv1alpha1.Subscription
	// next is when to write it again without an event; zero for none.
	next time.Time
	err  error
}

// record writes the transition log and the status of every Subscription. A failure of one does not
// affect the others. It returns the decisions for the written Subscriptions, and when to continue
// without an event.
func (r *recorder) record(ctx context.Context, state *planState) (decisions []*decision, next time.Time, err error) {
	begin := r.clock.Now()
	now := metav1.NewTime(begin).Rfc3339Copy()
	r.lag.retain(state.namespace, state.subscriptions)
	results := make([]result, len(state.decisions))
	write := func(i int) { results[i] = r.recordOne(ctx, state, state.decisions[i], now) }
	var (
		group errgroup.Group
		large []int // the Subscriptions that the cache does not have whole
	)
	group.SetLimit(maxWriters)
	for i, d := range state.decisions {
		log.FromContext(ctx).V(1).Info("Decided", "subscription", d.subscription.Name, "decision", d.String())
		results[i] = result{subscription: d.subscription, err: d.err}
		if stale(d.err) {
			continue
		}
		var delayed bool
		if results[i].next, delayed = r.lag.until(d.subscription, begin); delayed {
			continue
		}
		if informer.Trimmed(d.subscription) {
			large = append(large, i)
			continue
		}
		group.Go(func() error {
			write(i)
			return nil
		})
	}
	_ = group.Wait() // each error is in its result
	for _, i := range writeSome(large, write, func() bool { return r.clock.Since(begin) < largeTimeout }) {
		results[i].next = r.clock.Now().Add(afterCacheLag)
	}
	errs := make([]error, 0, len(results))
	for i, written := range results {
		retry, err := absorbConflict(written.err, r.clock.Now())
		next, errs = earliest(next, written.next, retry), append(errs, err)
		decisions = append(decisions, state.decisions[i].withSubscription(written.subscription))
	}
	return decisions, next, errors.Join(errs...)
}

// writeSome writes the first of a list, and further ones while time is left. It returns the others.
func writeSome(list []int, write func(int), timeLeft func() bool) []int {
	for n, i := range list {
		if n > 0 && !timeLeft() {
			return list[n:]
		}
		write(i)
	}
	return nil
}

// recordOne writes all pending transitions of a Subscription, and its status.
func (r *recorder) recordOne(ctx context.Context, state *planState, d *decision, now metav1.Time) result {
	p := state.ensured[d.subscription.Name]
	if p == nil {
		p = currentPlan(state.plans, d)
	}
	for {
		sub, more, err := r.recordBatch(ctx, state.namespaceState, d, p, now)
		switch {
		case apierrors.IsConflict(err):
			return result{subscription: d.subscription, next: r.lag.conflict(d.subscription, r.clock.Now())}
		case err != nil || !more:
			return result{subscription: sub, err: err}
		}
		d = d.withSubscription(sub)
	}
}

// recordBatch writes as many transitions as a log has room for: first the log, then one status
// after the other. It returns the Subscription after the writes; more reports that this was not all.
func (r *recorder) recordBatch(
	ctx context.Context, o *namespaceState, d *decision, p *operatorsv1alpha1.InstallPlan, now metav1.Time,
) (after *operatorsv1alpha1.Subscription, more bool, err error) {
	sub := d.subscription
	entries, unreadable := transitionlog.Read(sub)
	stages, known := pendingStages(sub, entries, r.tracker.since, p, r.clock.Now())
	if !known {
		// The plan was found before its events came; they will arrive.
		return sub, false, nil
	}
	u := updateFor(o, d, entries, stages, now)
	if unreadable != nil {
		log.FromContext(ctx).Error(unreadable, "Beginning a new transition log", "subscription", sub.Name)
		u.log = append(transitionlog.Log{}, u.log...)
	}
	after = sub.DeepCopy()
	if err := r.writeLog(ctx, after, u, unreadable != nil); err != nil {
		return sub, false, err
	}
	for _, next := range u.statuses {
		before := after
		if after, err = patchStatus(ctx, r.client, before, next.status, now); err != nil {
			return sub, false, err
		}
		if !next.observed.IsZero() {
			acknowledgements.Observe(max(0, r.clock.Since(next.observed).Seconds()))
		}
		announceStatus(ctx, r.events, d.adopts, before, after)
	}
	if after.ResourceVersion != sub.ResourceVersion {
		r.lag.wrote(sub, after.ResourceVersion, r.clock.Now())
	}
	r.tracker.acknowledge(after)
	return after, u.more, nil
}

// writeLog writes the log of a Subscription if it has changed, or the label alone where there is no
// log, and emits Events about added transitions. With rewrite, it writes the log in any case. It
// updates sub with the result.
func (r *recorder) writeLog(ctx context.Context, sub *operatorsv1alpha1.Subscription, u update, rewrite bool) error {
	switch {
	case u.log == nil && !labelled(sub):
		return r.label(ctx, sub)
	case len(u.added) > 0 || !labelled(sub) || rewrite:
		if err := r.apply(ctx, sub, u.log); err != nil {
			return err
		}
		announceTransitions(r.events, sub, u.added)
	}
	return nil
}

// label writes the component label of a Subscription without a log. The label depends on the spec
// only. Where the cache lags, it is therefore written to the version of the API server, and other
// writes wait for the cache.
func (r *recorder) label(ctx context.Context, sub *operatorsv1alpha1.Subscription) error {
	err := r.apply(ctx, sub, nil)
	if !apierrors.IsConflict(err) {
		return err
	}
	live := metadataOf(sub)
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(sub), live); err != nil {
		return fmt.Errorf("reading Subscription %s/%s to label it: %w", sub.Namespace, sub.Name, err)
	}
	if _, has := live.Annotations[api.AnnotationTransitions]; has || live.UID != sub.UID {
		return err
	}
	current := sub.DeepCopy()
	current.ResourceVersion = live.ResourceVersion
	if err := r.apply(ctx, current, nil); err != nil {
		return err
	}
	r.lag.wrote(sub, current.ResourceVersion, r.clock.Now())
	return fmt.Errorf("%w: Subscription %s/%s", errCacheLag, sub.Namespace, sub.Name)
}

// apply writes the component label and the log of a Subscription, and updates sub with the result.
func (r *recorder) apply(ctx context.Context, sub *operatorsv1alpha1.Subscription, entries transitionlog.Log) error {
	u := metadataOf(sub)
	// The UID and the version exclude a recreated object and one that another client has written.
	u.SetUID(sub.UID)
	u.SetResourceVersion(sub.ResourceVersion)
	u.SetLabels(map[string]string{plansteps.ComponentLabel(sub.Spec.Package, sub.Namespace): ""})
	if entries != nil {
		u.SetAnnotations(map[string]string{api.AnnotationTransitions: entries.Text()})
	}
	// The API server would answer client.Apply with the whole object.
	content, err := json.Marshal(u)
	if err != nil {
		return fmt.Errorf("encoding the transition log of Subscription %s/%s: %w", sub.Namespace, sub.Name, err)
	}
	patch := client.RawPatch(types.ApplyPatchType, content)
	if err := apply.Patch(ctx, r.client, u, patch, client.FieldOwner(api.SubscriptionFieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("writing the transition log of Subscription %s/%s: %w", sub.Namespace, sub.Name, err)
	}
	sub.ResourceVersion, sub.Labels, sub.Annotations = u.GetResourceVersion(), u.GetLabels(), u.GetAnnotations()
	return nil
}

// labelled reports whether a Subscription has the component label.
func labelled(sub *operatorsv1alpha1.Subscription) bool {
	_, is := sub.Labels[plansteps.ComponentLabel(sub.Spec.Package, sub.Namespace)]
	return is
}
