package subscription

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

// Bounds of the look-up of events from before this process.
const (
	// backfillTimeout bounds the look-up. Transitions that are not found by then are recorded as
	// they are now.
	backfillTimeout = 45 * time.Second
	// quiet is the pause after which no more events are expected. Where only a deletion is sought,
	// nothing else shows that there is none.
	quiet = 500 * time.Millisecond
)

// backfill looks up, when the process begins, the transitions of InstallPlans that their
// Subscriptions do not show yet. The API server can repeat the events of the last minutes. It runs
// on standbys too, which may lead before they have seen an event.
type backfill struct {
	reader  client.Reader
	watcher client.WithWatch
	tracker *tracker
	synced  func(context.Context) bool
	now     func() time.Time
	// done is closed when the tracker has the events from before this process.
	done chan struct{}
	// backlogs is set before done is closed.
	backlogs []namespaceBacklog
}

// NeedLeaderElection returns false: the look-up also runs on standbys.
func (b *backfill) NeedLeaderElection() bool { return false }

// Start looks up past events. Transitions that it does not find are recorded as they are now, and
// marked as seen afterwards.
func (b *backfill) Start(ctx context.Context) error {
	defer close(b.done)
	defer b.tracker.setOrdered()
	if !b.synced(ctx) {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, backfillTimeout)
	defer cancel()
	if err := b.replayBacklogs(limited); err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "Looking up the transitions of InstallPlans while no supervisor ran; missing ones are recorded with the current phase")
	}
	return nil
}

// wait waits until the tracker has the events from before this process.
func (b *backfill) wait(ctx context.Context) error {
	select {
	case <-b.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enqueue adds the namespaces to the queue after the look-up of past events. Namespaces with
// transitions that are not shown yet come before all others. Where leaders change often, the end of
// the queue would otherwise wait until the events expire. Other namespaces get the priority of
// ordinary events.
func (b *backfill) enqueue(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	ranked, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request])
	if !ok {
		return fmt.Errorf("the queue is a %T, which has no priorities", queue)
	}
	go func() {
		if b.wait(ctx) != nil {
			return
		}
		for i, n := range b.backlogs {
			priority := 0
			if n.from > 0 {
				priority = len(b.backlogs) - i
			}
			ranked.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, reconcile.Request{NamespacedName: types.NamespacedName{Name: n.namespace}})
		}
	}()
	return nil
}

// replayBacklogs finds the transitions that are not shown yet, and replays the events since the
// oldest.
func (b *backfill) replayBacklogs(ctx context.Context) error {
	var subscriptions operatorsv1alpha1.SubscriptionList
	if err := b.reader.List(ctx, &subscriptions); err != nil {
		return fmt.Errorf("listing Subscriptions: %w", err)
	}
	var list operatorsv1alpha1.InstallPlanList
	if err := b.reader.List(ctx, &list); err != nil {
		return fmt.Errorf("listing InstallPlans: %w", err)
	}
	plans := map[types.UID]uint64{}
	for i := range list.Items {
		plans[list.Items[i].UID] = transitionlog.Version(list.Items[i].ResourceVersion)
	}
	b.backlogs = namespaceBacklogs(subscriptions.Items, list.Items)
	if len(b.backlogs) == 0 || b.backlogs[0].from == 0 {
		return nil
	}
	now, err := b.currentVersion(ctx)
	if err != nil {
		return err
	}
	return b.replayFrom(ctx, b.backlogs[0].from, now, plans)
}

// currentVersion returns the current resource version of the API server.
func (b *backfill) currentVersion(ctx context.Context) (uint64, error) {
	var list operatorsv1alpha1.InstallPlanList
	if err := b.watcher.List(ctx, &list, client.Limit(1)); err != nil {
		return 0, fmt.Errorf("listing InstallPlans: %w", err)
	}
	return transitionlog.Version(list.ResourceVersion), nil
}

// errExpired reports that the API server does not have the events after a version.
var errExpired = errors.New("the API server no longer has the events after that version")

// replay is a watch of the events after a version. first is the event that arrived already.
type replay struct {
	version uint64
	first   *watch.Event
	events  <-chan watch.Event
	stop    func()
}

// oldest begins a replay after a version. Where that version has expired, it begins after the oldest
// one that the API server has. A binary search finds it. More versions expire all the time. A replay
// is therefore kept until a better one begins.
func (b *backfill) oldest(ctx context.Context, version uint64) (*replay, error) {
	found, refusal := b.after(ctx, version)
	if !errors.Is(refusal, errExpired) {
		return found, refusal
	}
	now, err := b.currentVersion(ctx)
	if err != nil {
		return nil, err
	}
	expired, known := expiredVersion(refusal, version), now+1
	for expired+1 < known {
		middle := expired + (known-expired)/2
		if expired > version && found == nil {
			middle = min(middle, expired+slack/2)
		}
		next, err := b.after(ctx, middle)
		switch {
		case err == nil && middle-expired <= slack:
			// An older version would gain little, and this one expires in the time.
			found.end()
			return next, nil
		case err == nil:
			found.end()
			found, known = next, middle
		case errors.Is(err, errExpired):
			expired = expiredVersion(err, middle)
		default:
			found.end()
			return nil, err
		}
	}
	if found == nil {
		// All versions until now have expired.
		return b.oldest(ctx, now)
	}
	return found, nil
}

// slack is the number of available versions that the search may miss.
const slack = 16

// tooOld matches the message with which API servers refuse a version and name the oldest one that
// they have.
var tooOld = regexp.MustCompile(`too old resource version: \d+ \((\d+)\)`)

// expiredVersion returns the newest version that the API server reports as expired; at least the
// version that was asked for.
func expiredVersion(refusal error, asked uint64) uint64 {
	match := tooOld.FindStringSubmatch(refusal.Error())
	if match == nil {
		return asked
	}
	return max(asked, transitionlog.Version(match[1]))
}

// end stops a replay. A nil replay is allowed.
func (r *replay) end() {
	if r != nil {
		r.stop()
	}
}

// after begins a replay of the events of InstallPlans after a version. It returns errExpired if
// the API server refuses the version at once.
func (b *backfill) after(ctx context.Context, version uint64) (*replay, error) {
	watching, cancel := context.WithCancel(ctx)
	watcher, err := b.watcher.Watch(watching, &operatorsv1alpha1.InstallPlanList{},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: strconv.FormatUint(version, 10)}})
	if err != nil {
		cancel()
		return nil, asExpired(fmt.Errorf("watching InstallPlans from version %d on: %w", version, err))
	}
	r := &replay{version: version, events: watcher.ResultChan(), stop: func() {
		watcher.Stop()
		cancel()
	}}
	idle := time.NewTimer(quiet)
	defer idle.Stop()
	select {
	case event, open := <-r.events:
		if open && event.Type == watch.Error {
			r.stop()
			return nil, asExpired(apierrors.FromObject(event.Object))
		}
		if open {
			r.first = &event
		}
	case <-idle.C:
	case <-ctx.Done():
		r.stop()
		return nil, fmt.Errorf("asking for the events after version %d: %w", version, ctx.Err())
	}
	return r, nil
}

// replayFrom replays the events after a version, up to the current one. plans holds the resource
// versions of the existing plans.
func (b *backfill) replayFrom(ctx context.Context, version, now uint64, plans map[types.UID]uint64) error {
	for {
		r, err := b.oldest(ctx, version)
		if err != nil {
			return err
		}
		if r.version > version {
			log.FromContext(ctx).Info("The first events have expired", "wanted", version, "oldest", r.version)
		}
		reached, done, err := b.follow(ctx, r, now, newer(plans, r.version))
		r.stop()
		if done || (err != nil && !errors.Is(err, errExpired)) {
			return err
		}
		// The API server ends the watch of a slow client.
		version = reached
	}
}

// newer returns the plans whose resource version is newer than version.
func newer(plans map[types.UID]uint64, version uint64) map[types.UID]uint64 {
	wanted := map[types.UID]uint64{}
	for uid, at := range plans {
		if at > version {
			wanted[uid] = at
		}
	}
	return wanted
}

// follow records events until there are no more, or the replay ends. done reports the former;
// reached is the version of the last event.
func (b *backfill) follow(ctx context.Context, r *replay, now uint64, wanted map[types.UID]uint64) (reached uint64, done bool, err error) {
	reached = r.version
	if r.first != nil {
		reached = max(reached, b.record(*r.first, wanted))
	}
	idle := time.NewTimer(quiet)
	defer idle.Stop()
	for ; reached < now; idle.Reset(quiet) {
		select {
		case event, open := <-r.events:
			if !open {
				return reached, false, ctx.Err() //nolint:wrapcheck // it says that the time is over
			}
			if event.Type == watch.Error {
				return reached, false, asExpired(apierrors.FromObject(event.Object))
			}
			reached = max(reached, b.record(event, wanted))
		case <-idle.C:
			// Without other events, no event follows the last wanted one.
			if len(wanted) == 0 {
				return reached, true, nil
			}
		case <-ctx.Done():
			return reached, false, fmt.Errorf("waiting for the events of %d InstallPlans: %w", len(wanted), ctx.Err())
		}
	}
	return reached, true, nil
}

// record records an event, and removes its plan from wanted when the wanted version has arrived. It
// returns the version of the event.
func (b *backfill) record(event watch.Event, wanted map[types.UID]uint64) uint64 {
	installPlan, ok := event.Object.(*operatorsv1alpha1.InstallPlan)
	if !ok {
		return 0
	}
	version := transitionlog.Version(installPlan.ResourceVersion)
	if event.Type == watch.Deleted {
		b.tracker.markDeleted(installPlan, b.statusTime(installPlan))
		delete(wanted, installPlan.UID)
		return version
	}
	b.tracker.add(installPlan, b.statusTime(installPlan))
	if version >= wanted[installPlan.UID] {
		delete(wanted, installPlan.UID)
	}
	return version
}

// statusTime returns when the status of a plan was last written, from its managed fields; the current
// time if they lack it.
func (b *backfill) statusTime(installPlan *operatorsv1alpha1.InstallPlan) time.Time {
	var newest time.Time
	for _, m := range installPlan.ManagedFields {
		if m.Subresource == "status" && m.Time != nil && m.Time.After(newest) {
			newest = m.Time.Time
		}
	}
	if newest.IsZero() {
		return b.now()
	}
	return newest
}

// asExpired wraps errExpired around an answer that a version is too old. It returns other errors
// unchanged.
func asExpired(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return fmt.Errorf("%w: %w", errExpired, err)
	}
	return err
}
