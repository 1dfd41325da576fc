package transitions_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/transitionlog"
	"github.com/chandlery/chandlery/test/controlplane"
)

// observer records every version of every InstallPlan and Subscription from the beginning.
type observer struct {
	// prefix is the prefix of the watched namespaces.
	prefix string

	mu      sync.Mutex
	stories map[types.NamespacedName]*story
	// foreign are the revisions that the test has written.
	foreign map[uint64]bool
	// blind is the error that prevented a complete record.
	blind error
	// changes is the number of versions of Subscriptions.
	changes int
	// last is the time of the last event.
	last time.Time
}

// story is the history of one Subscription and its InstallPlans.
type story struct {
	record

	plan         *operatorsv1alpha1.InstallPlan
	subscription *operatorsv1alpha1.Subscription
	// changed is closed and replaced at each event.
	changed chan struct{}
}

// observe records until the test ends.
func (w *world) observe() *observer {
	w.T.Helper()
	o := &observer{prefix: w.prefix(), stories: map[types.NamespacedName]*story{}, foreign: map[uint64]bool{}, last: time.Now()}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.T.Context()))
	var running sync.WaitGroup
	w.T.Cleanup(func() {
		cancel()
		running.Wait()
	})
	for _, list := range []client.ObjectList{&operatorsv1alpha1.InstallPlanList{}, &operatorsv1alpha1.SubscriptionList{}} {
		if err := w.List(w.T.Context(), list); err != nil {
			w.T.Fatal(err)
		}
		from := list.GetResourceVersion()
		watcher, err := watchtools.NewRetryWatcherWithContext(ctx, from, source{c: controlplane.Client(w.T), list: list})
		if err != nil {
			w.T.Fatal(err)
		}
		running.Go(func() {
			for event := range watcher.ResultChan() {
				o.take(event)
			}
		})
	}
	return o
}

// source opens the watches of a kind.
type source struct {
	c    client.WithWatch
	list client.ObjectList
}

// WatchWithContext opens a watch.
func (s source) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	list, ok := s.list.DeepCopyObject().(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is no list", s.list)
	}
	return s.c.Watch(ctx, list, &client.ListOptions{Raw: &o})
}

// take records an event of a watch.
func (o *observer) take(event watch.Event) {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if object, ok := event.Object.(client.Object); ok && !strings.HasPrefix(object.GetNamespace(), o.prefix) {
		return
	}
	switch object := event.Object.(type) {
	case *operatorsv1alpha1.InstallPlan:
		o.takePlan(object, event.Type == watch.Deleted, now)
	case *operatorsv1alpha1.Subscription:
		o.takeSubscription(object, event.Type == watch.Deleted, now)
	default:
		o.blind = errors.Join(o.blind, fmt.Errorf("a watch ended with %+v", event))
	}
}

func (o *observer) takePlan(p *operatorsv1alpha1.InstallPlan, deleted bool, now time.Time) {
	if len(p.Spec.ClusterServiceVersionNames) != 1 {
		o.blind = errors.Join(o.blind, fmt.Errorf("InstallPlan %s/%s installs %v", p.Namespace, p.Name, p.Spec.ClusterServiceVersionNames))
		return
	}
	pkg, _, _ := strings.Cut(p.Spec.ClusterServiceVersionNames[0], ".")
	s := o.story(types.NamespacedName{Namespace: p.Namespace, Name: pkg})
	s.plans = append(s.plans, planVersion{revision: revision(p), uid: p.UID, stage: stageOf(p), deleted: deleted, at: now})
	s.plan = p
	if deleted {
		s.plan = nil
	}
	o.last = now
	s.wake()
}

func (o *observer) takeSubscription(sub *operatorsv1alpha1.Subscription, deleted bool, now time.Time) {
	s := o.story(client.ObjectKeyFromObject(sub))
	v := subscriptionVersion{revision: revision(sub), at: now}
	if is, refers := toldBy(&sub.Status); refers {
		v.shows, v.version = &is, sub.Status.InstallPlanRef.ResourceVersion
	}
	v.ledger, v.unread = transitionlog.Read(sub)
	s.subscription = sub
	if deleted {
		s.subscription = nil
	} else {
		s.subscriptions = append(s.subscriptions, v)
		o.changes++
	}
	o.last = now
	s.wake()
}

// wake ends all waits for a change. The lock must be held.
func (s *story) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// story returns the history of a Subscription. The lock must be held.
func (o *observer) story(key types.NamespacedName) *story {
	s := o.stories[key]
	if s == nil {
		s = &story{changed: make(chan struct{})}
		o.stories[key] = s
	}
	return s
}

// wrote records that the test has written a version of an InstallPlan.
func (o *observer) wrote(p *operatorsv1alpha1.InstallPlan) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.foreign[revision(p)] = true
}

// removes records that the test will delete an InstallPlan whose versions are installed.
func (o *observer) removes(key types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.story(key).installed = true
}

// await waits until the record of a Subscription is as wanted. It calls the condition with the lock held.
func (o *observer) await(ctx context.Context, key types.NamespacedName, what string, holds func(*story) bool) error {
	for {
		changed, ok := o.holds(key, holds)
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			r := o.record(key)
			return fmt.Errorf("waiting for %s of %s: %w; so far\n%s", what, key, context.Cause(ctx), sideBySide(truth(r), showings(r)))
		}
	}
}

// holds reports whether a condition holds for a Subscription. If not, it returns a channel that is
// closed at the next event.
func (o *observer) holds(key types.NamespacedName, condition func(*story) bool) (changed <-chan struct{}, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.story(key)
	return s.changed, condition(s)
}

// comes is await with the deadline patience.
func (o *observer) comes(ctx context.Context, key types.NamespacedName, what string, holds func(*story) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errImpatient)
	defer cancel()
	return o.await(ctx, key, what, holds)
}

// errImpatient means that a condition did not become true in time.
var errImpatient = errors.New("out of patience")

// plan returns the newest version of the InstallPlan of a Subscription; nil for none.
func (o *observer) plan(key types.NamespacedName) *operatorsv1alpha1.InstallPlan {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.story(key).plan.DeepCopy()
}

// count returns the number of versions of Subscriptions.
func (o *observer) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.changes
}

// quiet returns the time since the last event.
func (o *observer) quiet() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Since(o.last)
}

// record returns the record of a Subscription.
func (o *observer) record(key types.NamespacedName) record {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.story(key).record
	r.plans = slices.Clone(r.plans)
	for i := range r.plans {
		r.plans[i].foreign = o.foreign[r.plans[i].revision]
	}
	return r
}

// caughtUp reports whether the Subscription shows and has recorded the last stage of its
// InstallPlan, and not an earlier occurrence of it. The InstallPlan must also be in a final stage
// or wait for approval.
func caughtUp(s *story) bool {
	all := truth(s.record)
	if s.subscription == nil || len(all) == 0 {
		return false
	}
	last := all[len(all)-1]
	waits := last.stage == asking && s.plan != nil && !s.plan.Spec.Approved
	if last.stage != complete && last.stage != missing && last.stage.phase != "Failed" && !waits {
		return false
	}
	entries, err := transitionlog.Read(s.subscription)
	shown, refers := toldBy(&s.subscription.Status)
	if err != nil || len(entries) == 0 || !refers {
		return false
	}
	entry := entries[len(entries)-1]
	late := func(version string) bool {
		n, err := strconv.ParseUint(version, 10, 64)
		return last.stage == missing || (err == nil && n >= last.from)
	}
	return shown == last.told && late(s.subscription.Status.InstallPlanRef.ResourceVersion) && entryTold(&entry) == last.told && late(entry.Version)
}

// keys returns the keys of all Subscriptions.
func (o *observer) keys() []types.NamespacedName {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.SortedFunc(maps.Keys(o.stories), func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
}

// audit audits everything and returns the sum of the results.
func (o *observer) audit(t *testing.T) verdict {
	t.Helper()
	o.mu.Lock()
	blind := o.blind
	o.mu.Unlock()
	if blind != nil {
		t.Errorf("not everything was seen: %v", blind)
	}
	const most = 20
	var sum verdict
	wrong := 0
	keys := o.keys()
	for _, key := range keys {
		found := audit(o.record(key))
		sum.transitions += found.transitions
		sum.afterwards += found.afterwards
		sum.unacknowledged += found.unacknowledged
		sum.mistaken += found.mistaken
		if len(found.problems) == 0 {
			continue
		}
		wrong++
		if wrong <= most {
			t.Errorf("%s:\n%s", key, strings.Join(found.problems, "\n"))
		}
	}
	if wrong > most {
		t.Errorf("and %d more, of %d", wrong-most, len(keys))
	}
	return sum
}

func revision(o client.Object) uint64 {
	n, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0 // etcd counts revisions
	}
	return n
}
