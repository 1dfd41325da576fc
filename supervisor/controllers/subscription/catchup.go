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

// Bounds of the look-up of events from before this process.
const (
	// catchUpTimeout bounds the look-up. Transitions that are not found by then are recorded as
	// they are now.
	catchUpTimeout = 45 * time.Second
	// quiet is the pause after which no more events are expected. Where only a deletion is sought,
	// nothing else shows that there is none.
	quiet = 500 * time.Millisecond
)

// past looks up, when the process begins, the transitions of InstallPlans that their Subscriptions
// do not show yet. The API server can repeat the events of the last minutes. It runs on standbys
// too, which may lead before they have seen an event.
type past struct {
	reader  client.Reader
	watcher client.WithWatch
	journal *journal
	synced  func(context.Context) bool
	now     func() time.Time
	// arrears receives the transitions that are not shown yet, by namespace. done is closed after
	// that.
	arrears *[]arrear
	done    chan struct{}
}

// NeedLeaderElection returns false: the look-up also runs on standbys.
func (p *past) NeedLeaderElection() bool { return false }

// Start looks up past events. Transitions that it does not find are recorded as they are now, and
// marked as seen afterwards.
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

// present returns the current resource version of the API server.
func (p *past) present(ctx context.Context) (uint64, error) {
	var list operatorsv1alpha1.InstallPlanList
	if err := p.watcher.List(ctx, &list, client.Limit(1)); err != nil {
		return 0, fmt.Errorf("listing InstallPlans: %w", err)
	}
	return history.Version(list.ResourceVersion), nil
}

// errForgotten reports that the API server does not have the events after a version.
var errForgotten = errors.New("the API server does not remember that far")

// replay is a watch of the events after a version. first is the event that arrived already.
type replay struct {
	version uint64
	first   *watch.Event
	events  <-chan watch.Event
	stop    func()
}

// oldest begins a replay after a version. Where the API server has forgotten that version, it
// begins after the oldest one that the API server has. A binary search finds it. The API server
// forgets more versions all the time. A replay is therefore kept until a better one begins.
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
			// An older version would gain little, and the API server forgets this one in the time.
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
		// The API server has forgotten all versions until now.
		return p.oldest(ctx, now)
	}
	return found, nil
}

// slack is the number of available versions that the search may miss.
const slack = 16

// tooOld matches the message with which API servers refuse a version and name the oldest one that
// they have.
var tooOld = regexp.MustCompile(`too old resource version: \d+ \((\d+)\)`)

// admitted returns the newest version that the API server reports as forgotten; at least the
// version that was asked for.
func admitted(refusal error, asked uint64) uint64 {
	said := tooOld.FindStringSubmatch(refusal.Error())
	if said == nil {
		return asked
	}
	return max(asked, history.Version(said[1]))
}

// end stops a replay. A nil replay is allowed.
func (r *replay) end() {
	if r != nil {
		r.stop()
	}
}

// after begins a replay of the events of InstallPlans after a version. It returns errForgotten if
// the API server refuses the version at once.
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

// repeat replays the events after a version, up to the current one. plans holds the resource
// versions of the existing plans.
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

// take records an event, and removes its plan from wanted when the wanted version has arrived. It
// returns the version of the event.
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

// written returns when the status of a plan was last written, from its managed fields; the current
// time if they lack it.
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

// forgotten wraps errForgotten around an answer that a version is too old. It returns other errors
// unchanged.
func forgotten(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return fmt.Errorf("%w: %w", errForgotten, err)
	}
	return err
}
