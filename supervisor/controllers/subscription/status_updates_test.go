package subscription

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

// scenario is a Subscription, its plan, and a controller that dies now and then.
type scenario struct {
	t       *testing.T
	dice    *rand.Rand
	o       *namespaceState
	d       *decision
	plan    *operatorsv1alpha1.InstallPlan
	tracker *tracker
	// past holds all versions of the plan.
	past []*operatorsv1alpha1.InstallPlan
	// truth holds the phases of the plan, shown those in the status of the Subscription, and
	// written those in its log.
	truth, shown, written []string
	version               int
}

func newScenario(t *testing.T, dice *rand.Rand) *scenario {
	t.Helper()
	lamp := subscription("my", "lamp")
	s := &scenario{t: t, dice: dice, o: observed(read(t), lamp), tracker: &tracker{ordered: true}}
	s.d = decided(t, s.o)[0]
	s.plan = installPlan("p", "lamp.v2", "", 1, lamp)
	s.plan.UID = types.UID("p")
	s.moves("")
	return s
}

// moves updates the plan, with a phase.
func (s *scenario) moves(phase operatorsv1alpha1.InstallPlanPhase) {
	s.version++
	s.plan = s.plan.DeepCopy()
	s.plan.ResourceVersion, s.plan.Status.Phase = strconv.Itoa(s.version), phase
	s.o.plans = planSet{"p": s.plan}
	s.past = append(s.past, s.plan)
	s.tracker.add(s.plan, time.Unix(int64(s.version), 0))
	s.truth = then(s.truth, string(phase))
}

func then(list []string, next string) []string {
	if len(list) > 0 && list[len(list)-1] == next {
		return list
	}
	return append(list, next)
}

// showsAll runs the controller until it has done a number of writes, and then kills it.
func (s *scenario) showsAll(writes int) (all bool) {
	for {
		more, all := s.showsSome(&writes)
		if !more || !all {
			return all
		}
	}
}

func (s *scenario) showsSome(left *int) (more, all bool) {
	writes := *left
	defer func() { *left = writes }()
	sub := s.d.subscription
	entries, err := transitionlog.Read(sub)
	if err != nil {
		s.t.Fatal(err)
	}
	list, known := pendingStages(sub, entries, s.tracker.since, s.plan, time.Unix(0, 0))
	if !known {
		s.t.Fatal("the plan is not known")
	}
	c := updateFor(s.o, s.d, entries, list, at(1))
	if len(c.added) > 0 {
		writes--
		if writes < 0 {
			return false, false
		}
		sub = sub.DeepCopy()
		sub.Annotations = map[string]string{api.AnnotationTransitions: c.log.Text()}
		for _, f := range c.added {
			s.written = append(s.written, f.Phase)
			if int(f.Sequence) != len(s.written) {
				s.t.Fatalf("number %d, after %d", f.Sequence, len(s.written)-1)
			}
		}
	}
	for _, next := range c.statuses {
		status := next.status
		if !changed(sub.Status, status, equality.Semantic.DeepEqual) {
			continue
		}
		writes--
		if writes < 0 {
			break
		}
		sub = sub.DeepCopy()
		sub.Status = status
		stage, _ := transitionlog.Shown(&status)
		s.shown = then(s.shown, stage.Phase)
	}
	s.d.subscription, s.o.subscriptions[0] = sub, sub
	s.tracker.acknowledge(sub)
	return c.more, writes >= 0
}

// restarts gives the controller a new tracker, with the events that the server can repeat.
func (s *scenario) restarts() {
	s.tracker = &tracker{}
	told := uint64(0)
	if ref := s.d.subscription.Status.InstallPlanRef; ref != nil {
		told = transitionlog.Version(ref.ResourceVersion)
	}
	for _, i := range s.dice.Perm(len(s.past)) {
		if p := s.past[i]; transitionlog.Version(p.ResourceVersion) > told || p == s.plan {
			s.tracker.add(p, time.Unix(int64(s.version), 0))
		}
	}
	s.tracker.setOrdered()
}

// TestNothingIsLostAndNothingInvented runs plans through random phases while the controllers die
// between any two writes.
func TestNothingIsLostAndNothingInvented(t *testing.T) {
	all := []operatorsv1alpha1.InstallPlanPhase{"", "Planning", "RequiresApproval", "Installing", "Complete", "Failed"}
	for seed := range uint64(100) {
		dice := rand.New(rand.NewPCG(seed, 6))
		s := newScenario(t, dice)
		for range 40 {
			switch dice.IntN(5) {
			case 0:
				s.showsAll(dice.IntN(5))
			case 1:
				s.restarts()
			default:
				s.moves(all[dice.IntN(len(all))])
			}
		}
		if !s.showsAll(1000) || !s.showsAll(0) {
			t.Fatalf("seed %d: the writes do not end", seed)
		}
		if diff := cmp.Diff(s.truth, s.shown); diff != "" {
			t.Errorf("seed %d: the status (-truth +status):\n%s", seed, diff)
		}
		if diff := cmp.Diff(s.truth, s.written); diff != "" {
			t.Errorf("seed %d: the log (-truth +log):\n%s", seed, diff)
		}
	}
}

// TestLive checks which transitions count as live: the plan is still in their phase.
func TestLive(t *testing.T) {
	t.Parallel()
	s := newScenario(t, rand.New(rand.NewPCG(1, 6)))
	s.showsAll(10)
	s.moves("Installing")
	s.moves("Installing")
	s.showsAll(10)
	s.moves("Failed")
	s.moves("Complete")
	s.showsAll(10)
	entries, err := transitionlog.Read(s.d.subscription)
	if err != nil {
		t.Fatal(err)
	}
	var got []transitionlog.Observed
	for _, transition := range entries {
		got = append(got, transition.Observed)
	}
	if diff := cmp.Diff([]transitionlog.Observed{transitionlog.Live, transitionlog.Live, transitionlog.Afterwards, transitionlog.Live}, got); diff != "" {
		t.Error(diff)
	}
}

func TestBacklogStart(t *testing.T) {
	t.Parallel()
	sub := func(told string, own string) *operatorsv1alpha1.Subscription {
		s := showing(0)
		s.ResourceVersion = own
		s.Status.InstallPlanRef.ResourceVersion = told
		if told == "" {
			s.Status.InstallPlanRef = nil
		}
		return s
	}
	recorded := func(s *operatorsv1alpha1.Subscription) *operatorsv1alpha1.Subscription {
		entries := transitionlog.Log{}.Append(transitionlog.Transition{Plan: "install-a", UID: "plan", Version: "5", Phase: "Complete"})
		s.Annotations = map[string]string{api.AnnotationTransitions: entries.Text()}
		return s
	}
	others := planAt(9, "Complete")
	others.UID, others.OwnerReferences = "others", nil
	for _, tt := range []struct {
		reason string
		sub    *operatorsv1alpha1.Subscription
		plans  []*operatorsv1alpha1.InstallPlan
		from   uint64
		untold bool
	}{
		{reason: "all is told", sub: sub("5", "7"), plans: []*operatorsv1alpha1.InstallPlan{planAt(5, "Complete"), others}, from: 5},
		{reason: "its plan went on", sub: recorded(sub("5", "7")), plans: []*operatorsv1alpha1.InstallPlan{planAt(6, "Complete")}, from: 5, untold: true},
		{reason: "OLM wrote the status", sub: sub("5", "7"), plans: []*operatorsv1alpha1.InstallPlan{planAt(6, "Complete")}, from: 6},
		{reason: "its plan went on after OLM", sub: sub("5", "7"), plans: []*operatorsv1alpha1.InstallPlan{planAt(6, "Failed")}, from: 5, untold: true},
		{reason: "its plan is gone", sub: sub("5", "7"), plans: []*operatorsv1alpha1.InstallPlan{others}, from: 5, untold: true},
		{reason: "nothing was told yet", sub: sub("", "3"), plans: []*operatorsv1alpha1.InstallPlan{planAt(5, "Installing")}, from: 3, untold: true},
		{reason: "there is nothing to tell", sub: sub("", "3"), plans: []*operatorsv1alpha1.InstallPlan{others}, from: 3},
	} {
		if from, untold := backlogStart(tt.sub, tt.plans); from != tt.from || untold != tt.untold {
			t.Errorf("%s: from %d, %v; want %d, %v", tt.reason, from, untold, tt.from, tt.untold)
		}
	}
}

// TestAnotherPlanOfTheSameName has a new plan with the name of a deleted one. It must not change
// the transitions of a Subscription that it does not serve.
func TestAnotherPlanOfTheSameName(t *testing.T) {
	lamp := subscription("my", "lamp", knows("lamp.v2", "lamp.v2"))
	lamp.UID = "lamp-uid"
	o := observed(read(t), lamp).with([]*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v2", "lamp", operatorsv1alpha1.CSVPhaseSucceeded)})
	d := decided(t, o)[0]
	lamp.Status.InstallPlanRef = &corev1.ObjectReference{Name: "p", UID: "old", ResourceVersion: "5"}
	lamp.Status.Conditions = []operatorsv1alpha1.SubscriptionCondition{isTrue(operatorsv1alpha1.SubscriptionInstallPlanMissing, operatorsv1alpha1.ReferencedInstallPlanNotFound, "gone")}
	anew := installPlan("p", "other.v9", "", 1)
	anew.UID, anew.ResourceVersion = types.UID("new"), "9"
	o.plans = map[string]*operatorsv1alpha1.InstallPlan{"p": anew}
	entries := transitionlog.Log{}.Append(transitionlog.Transition{Plan: "p", UID: "old", Version: "5", Phase: "Complete"}).
		Append(transitionlog.Transition{Plan: "p", UID: "old", Version: "5", Phase: transitionlog.PhaseMissing, Reason: "ReferencedInstallPlanNotFound"})
	tr := &tracker{ordered: true}
	tr.add(anew, time.Unix(1, 0))
	list, _ := pendingStages(lamp, entries, tr.since, currentPlan(o.plans, d), time.Unix(2, 0))
	c := updateFor(o, d, entries, list, metav1.NewTime(time.Unix(2, 0)))
	for _, f := range c.added {
		t.Errorf("invented: %s (uid %s) %q", f.Plan, f.UID, f.Phase)
	}
	for _, s := range c.statuses {
		st, is := transitionlog.Shown(&s.status)
		if st != transitionlog.Missing() {
			t.Errorf("status tells %v %v of a plan that is gone", st, is)
		}
	}
}

// TestMissingPlanIsShown stops the process after the log has recorded a missing plan. The next
// process finds another plan.
func TestMissingPlanIsShown(t *testing.T) {
	s := newScenario(t, nil)
	s.moves("Complete")
	s.showsAll(100)
	sub := s.d.subscription.DeepCopy()
	entries, _ := transitionlog.Read(sub)
	entries = entries.Append(transitionlog.Transition{Plan: "p", UID: "p", Version: strconv.Itoa(s.version), Phase: transitionlog.PhaseMissing, Reason: "ReferencedInstallPlanNotFound"})
	next := installPlan("q", "lamp.v2", "", 2, sub)
	next.UID, next.ResourceVersion = "q", "100"
	s.o.plans = map[string]*operatorsv1alpha1.InstallPlan{"q": next}
	s.tracker.add(next, time.Unix(100, 0))
	list, _ := pendingStages(sub, entries, s.tracker.since, next, time.Unix(100, 0))
	c := updateFor(s.o, s.d, entries, list, at(1))
	for _, st := range c.statuses {
		if x, _ := transitionlog.Shown(&st.status); x == transitionlog.Missing() {
			return
		}
	}
	t.Errorf("the log shows Missing, no status ever does: %d statuses, log %s", len(c.statuses), c.log.Text())
}

// TestMoreThanALogHolds has a plan with more stages than a log holds, before the first of them
// is shown.
func TestMoreThanALogHolds(t *testing.T) {
	for _, writes := range []int{1000, 1} {
		s := newScenario(t, rand.New(rand.NewPCG(1, 1)))
		s.showsAll(1000)
		for i := range 100 {
			s.moves([]operatorsv1alpha1.InstallPlanPhase{"Installing", "Failed"}[i%2])
		}
		s.showsAll(writes)
		l, _ := transitionlog.Read(s.d.subscription)
		s.restarts()
		s.showsAll(1000)
		t.Logf("killed after %d writes: %d stages, %d shown by the status, the log begins with %d", writes, len(s.truth), len(s.shown), l[0].Sequence)
		if len(s.shown) != len(s.truth) {
			t.Errorf("killed after %d writes: the plan went through %d stages, the status showed %d", writes, len(s.truth), len(s.shown))
		}
	}
}
