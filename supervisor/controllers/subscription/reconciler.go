package subscription

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/grant"
	"github.com/chandlery/chandlery/supervisor/history"
	"github.com/chandlery/chandlery/supervisor/informer"
	"github.com/chandlery/chandlery/supervisor/plan"
	"github.com/chandlery/chandlery/supervisor/resolver"
)

// retryAfter is how soon a namespace is looked at again in which something
// failed that may pass.
const retryAfter = 5 * time.Second

// catalogStore gives the content of catalogs.
type catalogStore interface {
	State(key types.NamespacedName) (catalogs.State, bool)
	Bundle(ctx context.Context, catalog types.NamespacedName, pkg, channel, name string) (plan.Bundle, error)
}

// Reconciler serves the Subscriptions of one namespace at a time.
type Reconciler struct {
	client   client.Client
	live     client.Reader
	reader   client.Reader
	catalogs catalogStore
	unpacker unpacker
	lender   *grant.Lender
	recorder events.EventRecorder
	clock    clock.PassiveClock
	global   string
	memo     resolver.Memo
	library  library
	tracker  tracker
	refusals refusals
	lag      cacheLag
	backfill *backfill
}

// Reconcile observes the namespace that the request names, decides, makes the
// plans that are called for, and writes each Subscription's status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := r.backfill.wait(ctx); err != nil {
		return ctrl.Result{}, err
	}
	o, err := r.observe(ctx, req.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	troubles := r.attend(ctx, o)
	if len(o.subscriptions) == 0 {
		r.memo.Forget(req.Name)
		r.library.keep(req.Name, nil)
		return o.next(nil, r.clock.Now()), troubles
	}
	begin := r.clock.Now()
	decisions := r.decide(ctx, o)
	resolutions.Observe(r.clock.Since(begin).Seconds())
	r.learn(ctx, o, decisions)
	for _, d := range decisions {
		o.identify(d)
	}
	r.goBack(ctx, o, decisions)
	plans := r.ensurePlans(ctx, o, decisions)
	r.join(ctx, decisions)
	gone := superseded(o, decisions, plans)
	if err := errors.Join(r.retire(ctx, gone), r.restoreOwners(ctx, o, parted(o, decisions, plans, gone))); err != nil {
		return ctrl.Result{}, err
	}
	if err := errors.Join(troubles, r.tellAll(ctx, o, decisions, plans)); err != nil {
		return ctrl.Result{}, err
	}
	return o.next(decisions, r.clock.Now()), nil
}

// next says when a namespace has to be looked at again though nothing happens.
func (o *observation) next(decisions []*decision, now time.Time) ctrl.Result {
	if slices.ContainsFunc(decisions, func(d *decision) bool { return passing(d.err) }) {
		o.soonest(now.Add(retryAfter))
	}
	for _, d := range decisions {
		_, again := d.waiting(o.currentPlan(d), now)
		o.soonest(again)
	}
	if o.again.IsZero() {
		return ctrl.Result{}
	}
	return ctrl.Result{RequeueAfter: max(o.again.Sub(now), time.Millisecond)}
}

const (
	// writers is how many Subscriptions of a namespace are written at once.
	writers = 8
	// largeTime is how long a pass writes large Subscriptions, one at a time. The API server takes as long for
	// one of them as for many others, and those of one namespace must not delay installations in others.
	largeTime = 2 * time.Second
)

// tellAll writes on each Subscription what is to be told of it.
func (r *Reconciler) tellAll(ctx context.Context, o *observation, decisions []*decision, plans map[string]*operatorsv1alpha1.InstallPlan) error {
	begin := r.clock.Now()
	now := metav1.NewTime(begin).Rfc3339Copy()
	r.lag.keep(o.namespace, o.subscriptions)
	var group errgroup.Group
	group.SetLimit(writers)
	failed, next := make([]error, len(decisions)), make([]time.Time, len(decisions))
	// One that cannot be written keeps none of the others from being written.
	write := func(i int) {
		d := decisions[i]
		failed[i] = r.tell(ctx, o, d, plans[d.subscription.Name], now)
		if apierrors.IsConflict(failed[i]) {
			next[i], failed[i] = r.lag.conflict(d.subscription, r.clock.Now()), nil
		}
	}
	var large []int // which the cache does not have whole
	for i, d := range decisions {
		log.FromContext(ctx).V(1).Info("Decided", "subscription", d.subscription.Name, "decision", describe(d))
		if failed[i] = d.err; stale(d.err) {
			continue
		}
		var delayed bool
		if next[i], delayed = r.lag.until(d.subscription, begin); delayed {
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
	_ = group.Wait() // each error is in its place
	for _, i := range writeSome(large, write, func() bool { return r.clock.Since(begin) < largeTime }) {
		next[i] = r.clock.Now().Add(afterBehind)
	}
	for i, err := range failed {
		o.soonest(next[i])
		failed[i] = r.unlessConflict(o, err)
	}
	return errors.Join(failed...)
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

// decide decides with what is remembered of the namespace. Where nothing is resolved,
// nothing is: the content of a catalog may be gone meanwhile.
func (r *Reconciler) decide(ctx context.Context, o *observation) []*decision {
	if o.groups.problem(o.namespace) != nil {
		r.memo.Forget(o.namespace)
	}
	return decide(ctx, o, r.memo.Resolve)
}

// passing says whether an error may pass without a change that this controller
// would see.
func passing(err error) bool {
	var (
		unsatisfiable *resolver.UnsatisfiableError
		groups        *groupsError
		images        lookups
	)
	lasting := errors.As(err, &unsatisfiable) || errors.As(err, &groups) || errors.As(err, &images) ||
		errors.Is(err, plan.ErrNoInlineManifests) || errors.Is(err, errContentUnknown)
	return err != nil && !lasting
}

// tell writes on a Subscription all that it has not told yet.
func (r *Reconciler) tell(ctx context.Context, o *observation, d *decision, p *operatorsv1alpha1.InstallPlan, now metav1.Time) error {
	if p == nil {
		p = o.currentPlan(d)
	}
	for {
		more, err := r.tellSome(ctx, o, d, p, now)
		if err != nil || !more {
			return err
		}
	}
}

// tellSome writes as much as a ledger has room for: first the ledger, which says what
// is coming, then one status after the other. More says that this was not all.
func (r *Reconciler) tellSome(
	ctx context.Context, o *observation, d *decision, p *operatorsv1alpha1.InstallPlan, now metav1.Time,
) (more bool, err error) {
	sub := d.subscription
	ledger, unreadable := history.Read(sub)
	list, known := frames(sub, ledger, r.tracker.since, p, r.clock.Now())
	if !known {
		// The plan was found before its events came; they are on their way.
		return false, nil
	}
	c := o.chronicle(d, ledger, list, now)
	if unreadable != nil {
		log.FromContext(ctx).Error(unreadable, "Beginning a new ledger", "subscription", sub.Name)
		c.ledger = append(history.Log{}, c.ledger...)
	}
	before := sub.DeepCopy()
	if err := r.writeLedger(ctx, before, c, unreadable != nil); err != nil {
		return false, err
	}
	for i, status := range c.statuses {
		after, err := r.write(ctx, before, status, now)
		if err != nil {
			return false, err
		}
		if seen := c.since[i]; !seen.IsZero() {
			acknowledgements.Observe(max(0, r.clock.Since(seen).Seconds()))
		}
		r.announce(ctx, d, before, after)
		before = after
	}
	if before.ResourceVersion != sub.ResourceVersion {
		r.lag.wrote(sub, before.ResourceVersion, r.clock.Now())
	}
	d.subscription = before
	r.tracker.acknowledge(before)
	return c.more, nil
}

// writeLedger writes the ledger of a Subscription where it has changed, or the label alone where
// there is no ledger, and tells of fresh transitions. With rewrite the ledger is written in any case.
func (r *Reconciler) writeLedger(ctx context.Context, sub *operatorsv1alpha1.Subscription, c chronicle, rewrite bool) error {
	switch {
	case c.ledger == nil && !labelled(sub):
		return r.label(ctx, sub)
	case len(c.fresh) > 0 || !labelled(sub) || rewrite:
		if err := r.record(ctx, sub, c.ledger); err != nil {
			return err
		}
		r.publish(sub, c.fresh)
	}
	return nil
}

// write writes a Subscription's status when it differs, and returns the Subscription with the
// status and the version that it has then.
func (r *Reconciler) write(
	ctx context.Context, before *operatorsv1alpha1.Subscription, status operatorsv1alpha1.SubscriptionStatus, now metav1.Time,
) (*operatorsv1alpha1.Subscription, error) {
	if !changed(before.Status, status, equality.Semantic.DeepEqual) {
		return before, nil
	}
	after := before.DeepCopy()
	after.Status = status
	after.Status.LastUpdated = now
	// The list of conditions is replaced as a whole, so the write must not pass
	// when somebody else has changed it meanwhile.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	content, err := patch.Data(after)
	if err != nil {
		return nil, fmt.Errorf("encoding the status of Subscription %s/%s: %w", before.Namespace, before.Name, err)
	}
	written := metadataOf(before)
	if err := r.client.Status().Patch(ctx, written, client.RawPatch(patch.Type(), content)); err != nil {
		return nil, fmt.Errorf("writing the status of Subscription %s/%s: %w", before.Namespace, before.Name, err)
	}
	after.ResourceVersion = written.ResourceVersion
	return after, nil
}

// metadataOf returns what names a Subscription in a write that the API server answers with
// the metadata of the object alone. A namespace may have many Subscriptions, and the
// configuration of each may be large.
func metadataOf(sub *operatorsv1alpha1.Subscription) *metav1.PartialObjectMetadata {
	meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: sub.Namespace, Name: sub.Name}}
	meta.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.SubscriptionKind))
	return meta
}

// publish tells of transitions.
func (r *Reconciler) publish(sub *operatorsv1alpha1.Subscription, fresh []history.Transition) {
	for _, t := range fresh {
		transitions.WithLabelValues(cmp.Or(t.Phase, "None"), string(t.Observed)).Inc()
		kind := corev1.EventTypeNormal
		if t.Phase == string(operatorsv1alpha1.InstallPlanPhaseFailed) || t.Phase == history.PhaseMissing {
			kind = corev1.EventTypeWarning
		}
		// Events of one object and reason are counted together unless they relate to
		// different ones.
		about := &corev1.ObjectReference{
			APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.InstallPlanKind,
			Namespace: sub.Namespace, Name: t.Plan,
		}
		r.recorder.Eventf(sub, about, kind, cmp.Or(t.Reason, t.Phase), "Install", "InstallPlan %s: %s", t.Plan, cmp.Or(t.Phase, "created"))
	}
}

// What is missing here mostly comes before a namespace is looked at again: after
// afterConflict one in which somebody else has written an object, after afterBehind one
// of which not all is known yet.
const (
	afterConflict = 100 * time.Millisecond
	afterBehind   = time.Second
)

// unlessConflict drops the error that somebody else has written or deleted an object,
// and lets the namespace be looked at again soon: not every conflict comes with an
// event.
func (r *Reconciler) unlessConflict(o *observation, err error) error {
	switch {
	case errors.Is(err, errBehind):
		o.soonest(r.clock.Now().Add(afterBehind))
	case stale(err) || apierrors.IsNotFound(err):
		o.soonest(r.clock.Now().Add(afterConflict))
	default:
		return err
	}
	return nil
}

// announce makes an Event and a log line of what a person would want to be
// told.
func (r *Reconciler) announce(ctx context.Context, d *decision, before, after *operatorsv1alpha1.Subscription) {
	if before == after {
		return
	}
	log.FromContext(ctx).Info("Wrote status", "subscription", after.Name, "state", after.Status.State,
		"currentCSV", after.Status.CurrentCSV, "installedCSV", after.Status.InstalledCSV)
	for _, c := range after.Status.Conditions {
		bad := c.Type == operatorsv1alpha1.SubscriptionResolutionFailed || c.Type == operatorsv1alpha1.SubscriptionBundleUnpackFailed ||
			c.Type == api.ConditionConfigInvalid
		if bad && !before.Status.GetCondition(c.Type).Equals(c) {
			r.recorder.Eventf(after, nil, corev1.EventTypeWarning, string(c.Type), "Resolve", "%s", api.EventNote(c.Message+remedyIn(after, c.Type)))
		}
	}
	if d.adopts && before.Status.CurrentCSV == "" {
		r.recorder.Eventf(after, nil, corev1.EventTypeNormal, "Adopted", "Resolve", "%s was there already and belongs to this Subscription from now on", after.Status.CurrentCSV)
		return
	}
	if before.Status.InstalledCSV != after.Status.InstalledCSV && after.Status.InstalledCSV != "" {
		r.recorder.Eventf(after, nil, corev1.EventTypeNormal, "Installed", "Install", "%s is installed", after.Status.InstalledCSV)
	}
}
