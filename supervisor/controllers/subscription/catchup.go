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
	// arrears is where it leaves what was not told yet, and done is closed after that.
	arrears *[]arrear
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
	*p.arrears = arrears(subscriptions.Items, list.Items)
	if len(*p.arrears) == 0 || (*p.arrears)[0].from == 0 {
		return nil
	}
	now, err := p.present(ctx)
	if err != nil {
		return err
	}
	return p.repeat(ctx, (*p.arrears)[0].from, now, plans)
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

// replay is what the API server repeats of what happened after a version. first is what
// came already.
type replay struct {
	version uint64
	first   *watch.Event
	events  <-chan watch.Event
	stop    func()
}

// oldest begins to repeat what happened after a version or, where the API server has
// forgotten that, after the oldest one that it remembers. It remembers so far and no
// further, so that this is found by halving. What is remembered becomes less all the
// time: what was begun is kept, since it could be too late to begin it anew.
func (p *past) oldest(ctx context.Context, version uint64) (*replay, error) {
	found, refusal := p.after(ctx, version)
	if !errors.Is(refusal, errForgotten) {
		return found, refusal
	}
	now, err := p.present(ctx)
	if err != nil {
		return nil, err
	}
	forgotten, known := admitted(refusal, version), now+1
	for forgotten+1 < known {
		middle := forgotten + (known-forgotten)/2
		if forgotten > version && found == nil {
			middle = min(middle, forgotten+slack/2)
		}
		next, err := p.after(ctx, middle)
		switch {
		case err == nil && middle-forgotten <= slack:
			// Little is won by going further, and meanwhile this is forgotten too.
			found.end()
			return next, nil
		case err == nil:
			found.end()
			found, known = next, middle
		case errors.Is(err, errForgotten):
			forgotten = admitted(err, middle)
		default:
			found.end()
			return nil, err
		}
	}
	if found == nil {
		// So much has happened meanwhile.
		return p.oldest(ctx, now)
	}
	return found, nil
}

// slack is how many versions may be missing of those that the API server remembers.
const slack = 16

// tooOld is how API servers refuse a version, and say which is the oldest that they
// remember.
var tooOld = regexp.MustCompile(`too old resource version: \d+ \((\d+)\)`)

// admitted is the newest version that an API server says it has forgotten, which is that
// which it was asked for at least.
func admitted(refusal error, asked uint64) uint64 {
	said := tooOld.FindStringSubmatch(refusal.Error())
	if said == nil {
		return asked
	}
	return max(asked, history.Version(said[1]))
}

// end ends a replay, if there is one.
func (r *replay) end() {
	if r != nil {
		r.stop()
	}
}

// after begins to repeat what happened to InstallPlans after a version. That the API
// server does not remember it, it says at once.
func (p *past) after(ctx context.Context, version uint64) (*replay, error) {
	watching, cancel := context.WithCancel(ctx)
	watcher, err := p.watcher.Watch(watching, &operatorsv1alpha1.InstallPlanList{},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: strconv.FormatUint(version, 10)}})
	if err != nil {
		cancel()
		return nil, forgotten(fmt.Errorf("watching InstallPlans from version %d on: %w", version, err))
	}
	r := &replay{version: version, events: watcher.ResultChan(), stop: func() {
		watcher.Stop()
		cancel()
	}}
	silence := time.NewTimer(quiet)
	defer silence.Stop()
	select {
	case event, open := <-r.events:
		if open && event.Type == watch.Error {
			r.stop()
			return nil, forgotten(apierrors.FromObject(event.Object))
		}
		if open {
			r.first = &event
		}
	case <-silence.C:
	case <-ctx.Done():
		r.stop()
		return nil, fmt.Errorf("asking what is remembered after version %d: %w", version, ctx.Err())
	}
	return r, nil
}

// repeat lets the API server repeat the events after a version, up to the one that it
// is at now; plans are those that there were then.
func (p *past) repeat(ctx context.Context, version, now uint64, plans map[types.UID]uint64) error {
	for {
		r, err := p.oldest(ctx, version)
		if err != nil {
			return err
		}
		if r.version > version {
			log.FromContext(ctx).Info("The API server has forgotten what happened first", "wanted", version, "oldest", r.version)
		}
		reached, done, err := p.follow(ctx, r, now, newer(plans, r.version))
		r.stop()
		if done || (err != nil && !errors.Is(err, errForgotten)) {
			return err
		}
		// The API server ends the watch of whoever does not read fast enough.
		version = reached
	}
}

// newer are the plans that have a newer version than one.
func newer(plans map[types.UID]uint64, version uint64) map[types.UID]uint64 {
	wanted := map[types.UID]uint64{}
	for uid, at := range plans {
		if at > version {
			wanted[uid] = at
		}
	}
	return wanted
}

// follow notes events until there are no more, which it says with done, or the replay
// ends; reached is the version of the last one.
func (p *past) follow(ctx context.Context, r *replay, now uint64, wanted map[types.UID]uint64) (reached uint64, done bool, err error) {
	reached = r.version
	if r.first != nil {
		reached = max(reached, p.take(*r.first, wanted))
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
				return reached, false, forgotten(apierrors.FromObject(event.Object))
			}
			reached = max(reached, p.take(event, wanted))
		case <-idle.C:
			// Where nothing else happens, nothing comes after what was looked for.
			if len(wanted) == 0 {
				return reached, true, nil
			}
		case <-ctx.Done():
			return reached, false, fmt.Errorf("waiting for the events of %d InstallPlans: %w", len(wanted), ctx.Err())
		}
	}
	return reached, true, nil
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
