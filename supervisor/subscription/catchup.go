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
)

// Bounds of looking up what happened while nobody was there.
const (
	// catchUpTimeout is how long it may take; what has not been found by then is
	// told as it is now.
	catchUpTimeout = 15 * time.Second
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
		plans[list.Items[i].UID] = versionOf(list.Items[i].ResourceVersion)
	}
	versions := oldest(subscriptions.Items, list.Items)
	if len(versions) == 0 {
		return nil
	}
	err := p.repeat(ctx, versions[0], plans)
	if !errors.Is(err, errForgotten) {
		return err
	}
	// The server remembers so far and no further: the oldest version that it still
	// knows is found by halving.
	low, high := 1, len(versions)
	for low < high {
		middle := (low + high) / 2
		switch err := p.repeat(ctx, versions[middle], plans); {
		case err == nil:
			high = middle
		case errors.Is(err, errForgotten):
			low = middle + 1
		default:
			return err
		}
	}
	return nil
}

// errForgotten says that the API server does not remember what came after a version.
var errForgotten = errors.New("the API server does not remember that far")

// repeat lets the API server repeat the events after a version, up to what plans says
// to be so now.
func (p *past) repeat(ctx context.Context, version uint64, plans map[types.UID]uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := p.watcher.Watch(ctx, &operatorsv1alpha1.InstallPlanList{},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: strconv.FormatUint(version, 10)}})
	if err != nil {
		return forgotten(fmt.Errorf("watching InstallPlans from version %d on: %w", version, err))
	}
	defer events.Stop()
	wanted := map[types.UID]uint64{}
	for uid, now := range plans {
		if now > version {
			wanted[uid] = now
		}
	}
	for idle := time.NewTimer(quiet); ; idle.Reset(quiet) {
		select {
		case event, open := <-events.ResultChan():
			if !open {
				return ctx.Err() //nolint:wrapcheck // it says that the time is over
			}
			if event.Type == watch.Error {
				return forgotten(apierrors.FromObject(event.Object))
			}
			p.take(event, wanted)
		case <-idle.C:
			if len(wanted) == 0 {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("waiting for the events of %d InstallPlans: %w", len(wanted), ctx.Err())
		}
	}
}

// take notes an event, and that what was wanted of a plan is there.
func (p *past) take(event watch.Event, wanted map[types.UID]uint64) {
	installPlan, ok := event.Object.(*operatorsv1alpha1.InstallPlan)
	if !ok {
		return
	}
	if event.Type == watch.Deleted {
		p.journal.end(installPlan, p.written(installPlan))
		delete(wanted, installPlan.UID)
		return
	}
	p.journal.see(installPlan, p.written(installPlan))
	if versionOf(installPlan.ResourceVersion) >= wanted[installPlan.UID] {
		delete(wanted, installPlan.UID)
	}
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
