package transitions_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/pause"
)

// poller reads a Subscription once a second, as many clients do.
type poller struct {
	mu   sync.Mutex
	seen []stage
	end  func()
}

// poll reads until the test ends or end is called.
func (w *world) poll(key types.NamespacedName) *poller {
	w.T.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.T.Context()))
	var running sync.WaitGroup
	p := &poller{end: func() {
		cancel()
		running.Wait()
	}}
	running.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				p.look(ctx, w.Client, key)
			case <-ctx.Done():
				return
			}
		}
	})
	w.T.Cleanup(p.end)
	return p
}

func (p *poller) look(ctx context.Context, c client.Client, key types.NamespacedName) {
	sub := &operatorsv1alpha1.Subscription{}
	if err := c.Get(ctx, key, sub); err != nil {
		return
	}
	is, refers := toldBy(&sub.Status)
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.seen); refers && (n == 0 || p.seen[n-1] != is.stage) {
		p.seen = append(p.seen, is.stage)
	}
}

// saw returns the stages in the order in which they were seen, without consecutive repetitions.
func (p *poller) saw() []stage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]stage(nil), p.seen...)
}

// follows reports whether the wanted stages occur in order among the seen ones.
func follows(seen, wanted []stage) bool {
	for _, s := range seen {
		if len(wanted) > 0 && s == wanted[0] {
			wanted = wanted[1:]
		}
	}
	return len(wanted) == 0
}

// scene is a world with one supervisor and one Subscription.
type scene struct {
	*world
	hand

	o    *observer
	crew *crew
	key  types.NamespacedName
}

func newScene(t *testing.T, manual bool) *scene {
	t.Helper()
	w := newWorld(t, 1)
	o := w.observe()
	s := &scene{world: w, hand: hand{c: w.Client, o: o}, o: o, crew: w.newCrew()}
	s.crew.start(1)
	s.key = w.alone(0, manual)
	return s
}

// comes waits until the Subscription is as wanted.
func (s *scene) comes(what string, holds func(*story) bool) {
	s.T.Helper()
	if err := s.o.comes(s.T.Context(), s.key, what, holds); err != nil {
		s.T.Fatal(err)
	}
}

// tells waits until the Subscription shows a stage of its InstallPlan.
func (s *scene) tells(is stage) *operatorsv1alpha1.Subscription {
	s.T.Helper()
	var sub *operatorsv1alpha1.Subscription
	s.comes(is.String(), func(st *story) bool {
		if st.subscription == nil {
			return false
		}
		sub = st.subscription
		got, refers := toldBy(&sub.Status)
		return refers && got.stage == is && (is == missing || (st.plan != nil && got.plan == st.plan.UID))
	})
	return sub
}

// rests waits until the installation has ended.
func (s *scene) rests() {
	s.T.Helper()
	s.comes("the end of the installation", func(st *story) bool { return caughtUp(st) && st.subscription.Status.InstalledCSV != "" })
}

func (s *scene) do(err error) {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
}

// ends audits everything and fails if a stage was missed.
func (s *scene) ends() {
	s.T.Helper()
	s.comes("rest", caughtUp)
	if sum := s.o.audit(s.T); sum.unacknowledged > 0 {
		s.T.Errorf("%d phases were left before they were shown", sum.unacknowledged)
	}
}

// TestEditsAreTold edits a completed InstallPlan step by step, as OLM's tests do. A client that
// reads once a second must see every step, and other conditions of the Subscription must remain.
func TestEditsAreTold(t *testing.T) {
	s := newScene(t, false)
	ctx := t.Context()
	s.rests()
	before := s.tells(complete)
	uid := before.Status.InstallPlanRef.UID
	p := s.poll(s.key)
	s.polled(p, complete)

	s.do(s.asks(ctx, s.key, `{"approval":"Manual","approved":false}`))
	for _, to := range []stage{unreconciled, asking, working, failed, broken} {
		s.do(s.moves(ctx, s.key, to))
		s.polled(p, to)
		s.keeps(before, s.tells(to))
		if got := s.o.plan(s.key); got == nil || got.UID != uid {
			t.Fatalf("after %s the plan is %v, and it was %s", to, got, uid)
		}
	}
	s.do(s.removes(ctx, s.key, true))
	s.keeps(before, s.tells(missing))
	s.polled(p, missing)
	p.end()
	if want := []stage{complete, unreconciled, asking, working, failed, broken, missing}; !follows(p.saw(), want) {
		t.Errorf("a look every second saw %v, want %v", p.saw(), want)
	}
	s.ends()
}

// polled waits until the poller's last seen stage is the wanted one, and fails if it sees the next one first.
func (s *scene) polled(p *poller, is stage) {
	s.T.Helper()
	ctx, cancel := context.WithTimeoutCause(s.T.Context(), 20*time.Second, errImpatient)
	defer cancel()
	for {
		if seen := p.saw(); len(seen) > 0 && seen[len(seen)-1] == is {
			return
		}
		if !pause.For(ctx, 50*time.Millisecond) {
			s.T.Fatalf("a look every second saw %v and no %s; %v", p.saw(), is, s.sofar())
		}
	}
}

func (s *scene) sofar() string {
	r := s.o.record(s.key)
	return sideBySide(truth(r), showings(r))
}

// keeps checks that everything in the status of a Subscription other than its InstallPlan's stage is unchanged.
func (s *scene) keeps(before, after *operatorsv1alpha1.Subscription) {
	s.T.Helper()
	if after.Status.InstalledCSV != before.Status.InstalledCSV || after.Status.CurrentCSV != before.Status.CurrentCSV {
		s.T.Errorf("installed %q, current %q; before %q and %q", after.Status.InstalledCSV, after.Status.CurrentCSV, before.Status.InstalledCSV, before.Status.CurrentCSV)
	}
	about := func(sub *operatorsv1alpha1.Subscription) string {
		var text strings.Builder
		for _, c := range sub.Status.Conditions {
			if !strings.HasPrefix(string(c.Type), "InstallPlan") {
				fmt.Fprintf(&text, "%s=%s %s %s %s\n", c.Type, c.Status, c.Reason, c.Message, c.LastTransitionTime)
			}
		}
		return text.String()
	}
	if about(after) != about(before) {
		s.T.Errorf("conditions that are not about plans became\n%s after they were\n%s", about(after), about(before))
	}
	if !strings.Contains(about(after), "CatalogSourcesUnhealthy=False AllCatalogSourcesHealthy") {
		s.T.Errorf("nothing is said of the catalogs: %s", about(after))
	}
}

// TestPendingPlanIsDeleted deletes an InstallPlan that waits for approval, and one that failed
// before it had installed anything. A new one must replace it, and nothing in the status may refer
// to the old one.
func TestPendingPlanIsDeleted(t *testing.T) {
	s := newScene(t, true)
	ctx := t.Context()
	for _, from := range []stage{asking, failed, broken, unreconciled} {
		sub := s.tells(asking)
		old := sub.Status.InstallPlanRef.UID
		if sub.Status.State != operatorsv1alpha1.SubscriptionStateUpgradePending {
			t.Errorf("state %q while a plan waits", sub.Status.State)
		}
		if from != asking {
			s.do(s.moves(ctx, s.key, from))
			s.tells(from)
		}
		s.do(s.removes(ctx, s.key, false))
		s.comes("another plan after "+from.String(), func(st *story) bool {
			if st.subscription == nil {
				return false
			}
			got, refers := toldBy(&st.subscription.Status)
			return refers && got.plan != old && got.stage == asking
		})
		sub = s.tells(asking)
		if c := sub.Status.GetCondition(operatorsv1alpha1.SubscriptionInstallPlanFailed); c.Status == corev1.ConditionTrue {
			t.Errorf("after %s was deleted the new plan has failed: %+v", from, c)
		}
		if sub.Status.State != operatorsv1alpha1.SubscriptionStateUpgradePending || sub.Status.InstallPlanRef.UID == old {
			t.Errorf("after %s was deleted: state %q, plan %+v", from, sub.Status.State, sub.Status.InstallPlanRef)
		}
	}
	s.do(s.asks(ctx, s.key, `{"approved":true}`))
	s.rests()
	s.ends()
}
