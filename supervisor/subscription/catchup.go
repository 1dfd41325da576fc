package subscription

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/history"
)

// Bounds of looking up what happened while nobody was there.
const (
	// catchUpTimeout is how long it may take; what has not been found by then is
	// told as it is now.
	catchUpTimeout = 45 * time.Second
	// quiet is how long nothing may come before it is taken for all: where only a
	// deletion is looked for, nothing tells that there is none.
	quiet = 500 * time.Millisecond
)

// past looks up, when the process begins, what InstallPlans went through since their
// Subscriptions told of them last: the API server can repeat the events of the last
// minutes. It runs on standbys too, which may lead before they have seen anything.
type past struct {
	reader  client.Reader
	watcher client.WithWatch
	journal *journal
	synced  func(context.Context) bool
	now     func() time.Time
	done    chan struct{}
}

// NeedLeaderElection says that it runs whoever leads.
func (p *past) NeedLeaderElection() bool { return false }

// Start looks up what happened. What cannot be had is left out: it is told as it is
// now, marked as seen afterwards.
func (p *past) Start(ctx context.Context) error {
	defer close(p.done)
	defer p.journal.order()
	if !p.synced(ctx) {
		return nil
	}
	looking, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	if err := p.look(looking); err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "Looking up what InstallPlans went through while no supervisor ran; what is missing is told as it is now")
	}
	return nil
}

func (p *past) look(ctx context.Context) error {
	var subscriptions operatorsv1alpha1.SubscriptionList
	if err := p.reader.List(ctx, &subscriptions); err != nil {
		return fmt.Errorf("listing Subscriptions: %w", err)
	}
	var list operatorsv1alpha1.InstallPlanList
	if err := p.reader.List(ctx, &list); err != nil {
		return fmt.Errorf("listing InstallPlans: %w", err)
	}
	plans := map[types.UID]uint64{}
	for i := range list.Items {
		plans[list.Items[i].UID] = history.Version(list.Items[i].ResourceVersion)
	}
	versions := oldest(subscriptions.Items, list.Items)
	if len(versions) == 0 {
		return nil
	}
	now, err := p.present(ctx)
	if err != nil {
		return err
	}
	from, err := p.remembered(ctx, versions[0], now)
	if err != nil {
		return err
	}
	return p.repeat(ctx, from, now, plans)
}

// present gives the version that the API server is at.
func (p *past) present(ctx context.Context) (uint64, error) {
	var list operatorsv1alpha1.InstallPlanList
	if err := p.watcher.List(ctx, &list, client.Limit(1)); err != nil {
		return 0, fmt.Errorf("listing InstallPlans: %w", err)
	}
	return history.Version(list.ResourceVersion), nil
}

// errForgotten says that the API server does not remember what came after a version.
var errForgotten = errors.New("the API server does not remember that far")

// remembered gives the oldest version, from one on, after which the API server still
// knows what happened. It remembers so far and no further, so that this is found by
// halving.
func (p *past) remembered(ctx context.Context, oldest, now uint64) (uint64, error) {
	err := p.probe(ctx, oldest)
	if !errors.Is(err, errForgotten) {
		return oldest, err
	}
	forgotten, known := oldest, now
	for known-forgotten > 1 {
		middle := forgotten + (known-forgotten)/2
		switch err := p.probe(ctx, middle); {
		case err == nil:
			known = middle
		case errors.Is(err, errForgotten):
			forgotten = middle
		default:
			return 0, err
		}
	}
	return known, nil
}

// probe asks whether the API server remembers what came after a version. That it does
// not it says at once.
func (p *past) probe(ctx context.Context, version uint64) error {
	events, stop, err := p.after(ctx, version)
	if err != nil {
		return err
	}
	defer stop()
	silence := time.NewTimer(quiet)
	defer silence.Stop()
	select {
	case event := <-events:
		if event.Type == watch.Error {
			return forgotten(apierrors.FromObject(event.Object))
		}
		return nil
	case <-silence.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("asking what is remembered after version %d: %w", version, ctx.Err())
	}
}

// after lets the API server repeat what happened to InstallPlans after a version.
func (p *past) after(ctx context.Context, version uint64) (events <-chan watch.Event, stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	watcher, err := p.watcher.Watch(ctx, &operatorsv1alpha1.InstallPlanList{},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: strconv.FormatUint(version, 10)}})
	if err != nil {
		cancel()
		return nil, nil, forgotten(fmt.Errorf("watching InstallPlans from version %d on: %w", version, err))
	}
	stop = func() {
		watcher.Stop()
		cancel()
	}
	return watcher.ResultChan(), stop, nil
}

// repeat lets the API server repeat the events after a version, up to the one that it
// is at now; plans are those that there were then.
func (p *past) repeat(ctx context.Context, version, now uint64, plans map[types.UID]uint64) error {
	wanted := map[types.UID]uint64{}
	for uid, at := range plans {
		if at > version {
			wanted[uid] = at
		}
	}
	for {
		reached, done, err := p.follow(ctx, version, now, wanted)
		if err != nil || done {
			return err
		}
		// The API server ends the watch of whoever does not read fast enough.
		version = reached
	}
}

// follow notes events after a version until there are no more, which it says with done,
// or the watch ends; reached is the version of the last one.
func (p *past) follow(ctx context.Context, version, now uint64, wanted map[types.UID]uint64) (reached uint64, done bool, err error) {
	events, stop, err := p.after(ctx, version)
	if err != nil {
		return version, false, err
	}
	defer stop()
	idle := time.NewTimer(quiet)
	defer idle.Stop()
	for ; ; idle.Reset(quiet) {
		select {
		case event, open := <-events:
			if !open {
				return version, false, ctx.Err() //nolint:wrapcheck // it says that the time is over
			}
			if event.Type == watch.Error {
				return version, false, forgotten(apierrors.FromObject(event.Object))
			}
			version = max(version, p.take(event, wanted))
			if version >= now {
				return version, true, nil
			}
		case <-idle.C:
			// Where nothing else happens, nothing comes after what was looked for.
			if len(wanted) == 0 {
				return version, true, nil
			}
		case <-ctx.Done():
			return version, false, fmt.Errorf("waiting for the events of %d InstallPlans: %w", len(wanted), ctx.Err())
		}
	}
}

// take notes an event, and that what was wanted of a plan is there. It gives the version
// of the event.
func (p *past) take(event watch.Event, wanted map[types.UID]uint64) uint64 {
	installPlan, ok := event.Object.(*operatorsv1alpha1.InstallPlan)
	if !ok {
		return 0
	}
	version := history.Version(installPlan.ResourceVersion)
	if event.Type == watch.Deleted {
		p.journal.end(installPlan, p.written(installPlan))
		delete(wanted, installPlan.UID)
		return version
	}
	p.journal.see(installPlan, p.written(installPlan))
	if version >= wanted[installPlan.UID] {
		delete(wanted, installPlan.UID)
	}
	return version
}

// written is when the status of a plan was written last, as far as it says so.
func (p *past) written(installPlan *operatorsv1alpha1.InstallPlan) time.Time {
	var newest time.Time
	for _, m := range installPlan.ManagedFields {
		if m.Subresource == "status" && m.Time != nil && m.Time.After(newest) {
			newest = m.Time.Time
		}
	}
	if newest.IsZero() {
		return p.now()
	}
	return newest
}

// forgotten tells an answer that says that a version is too old from other errors.
func forgotten(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return fmt.Errorf("%w: %w", errForgotten, err)
	}
	return err
}
