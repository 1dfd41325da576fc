package timeline_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/cmd/internal/command/history/timeline"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

var update = flag.Bool("update", false, "write the golden files")

// zone is the time zone of the output.
var zone = time.FixedZone("EET", 2*60*60)

// begin is the time of the first transition.
var begin = time.Date(2026, time.March, 2, 8, 59, 30, 0, time.UTC)

// after returns the time d after begin.
func after(d time.Duration) metav1.Time { return metav1.NewTime(begin.Add(d)) }

// went returns a transition of an InstallPlan.
func went(plan, phase, reason string, d time.Duration, observed transitionlog.Observed) transitionlog.Transition {
	return transitionlog.Transition{
		Plan: "install-" + plan, UID: types.UID(plan), Version: "1", Phase: phase, Reason: reason, Time: after(d), Observed: observed,
	}
}

// transitionLog numbers transitions and returns them as a log.
func transitionLog(transitions ...transitionlog.Transition) transitionlog.Log {
	var l transitionlog.Log
	for _, t := range transitions {
		l = l.Append(t)
	}
	return l
}

func subscription(l transitionlog.Log, status operatorsv1alpha1.SubscriptionStatus) *operatorsv1alpha1.Subscription {
	sub := &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "my-lamp", UID: "s"},
		Spec:       &operatorsv1alpha1.SubscriptionSpec{Package: "lamp", Channel: "stable", CatalogSource: "wares", CatalogSourceNamespace: "olm"},
		Status:     status,
	}
	if l != nil {
		sub.Annotations = map[string]string{api.AnnotationTransitions: l.Text()}
	}
	return sub
}

func installPlan(name string, versions ...string) operatorsv1alpha1.InstallPlan {
	return operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "install-" + name, UID: types.UID(name)},
		Spec:       operatorsv1alpha1.InstallPlanSpec{ClusterServiceVersionNames: versions},
	}
}

func condition(kind operatorsv1alpha1.SubscriptionConditionType, reason, message string, since time.Duration) operatorsv1alpha1.SubscriptionCondition {
	at := after(since)
	return operatorsv1alpha1.SubscriptionCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: &at}
}

// first is a successful installation.
func first() []transitionlog.Transition {
	return []transitionlog.Transition{
		went("aaa", "", "InstallPlanNotYetReconciled", 0, transitionlog.Live),
		went("aaa", "Planning", "Planning", 0, transitionlog.Live),
		went("aaa", "Installing", "Installing", 4*time.Second, transitionlog.Live),
		went("aaa", "Complete", "", 6*time.Second, transitionlog.Afterwards),
	}
}

const day = 24 * time.Hour

// situations returns Subscriptions for the tests.
func situations() map[string]*operatorsv1alpha1.Subscription {
	waiting := transitionLog(append(first(),
		went("bbb", "", "InstallPlanNotYetReconciled", day, transitionlog.Live),
		went("bbb", "RequiresApproval", "RequiresApproval", day, transitionlog.Live))...)
	long := transitionLog(append(first(),
		went("ccc", "Installing", "Installing", 2*day, transitionlog.Live),
		went("ccc", "Failed", "InstallComponentFailed", 2*day+61*time.Second, transitionlog.Live))...)
	short := append(transitionlog.Log{}, long[1], long[4], long[5])
	healthy := condition("CatalogSourcesUnhealthy", "AllCatalogSourcesHealthy", "all available catalogsources are healthy", 0)
	healthy.Status = corev1.ConditionFalse
	unreadable := subscription(nil, operatorsv1alpha1.SubscriptionStatus{})
	unreadable.Annotations = map[string]string{api.AnnotationTransitions: "{"}
	return map[string]*operatorsv1alpha1.Subscription{
		"installed": subscription(transitionLog(first()...), operatorsv1alpha1.SubscriptionStatus{
			State: "AtLatestKnown", InstalledCSV: "lamp.v1", CurrentCSV: "lamp.v1", InstallPlanRef: &corev1.ObjectReference{Name: "install-aaa", UID: "aaa"},
			Conditions: []operatorsv1alpha1.SubscriptionCondition{healthy},
		}),
		"waiting": subscription(waiting, operatorsv1alpha1.SubscriptionStatus{
			State: "UpgradePending", InstalledCSV: "lamp.v1", CurrentCSV: "lamp.v2", InstallPlanRef: &corev1.ObjectReference{Name: "install-bbb", UID: "bbb"},
			Conditions: []operatorsv1alpha1.SubscriptionCondition{condition("InstallPlanPending", "RequiresApproval", "", day)},
		}),
		"failed": subscription(short, operatorsv1alpha1.SubscriptionStatus{
			State: "UpgradePending", CurrentCSV: "lamp.v3", InstallPlanRef: &corev1.ObjectReference{Name: "install-ccc", UID: "ccc"},
			Conditions: []operatorsv1alpha1.SubscriptionCondition{condition("InstallPlanFailed", "InstallComponentFailed",
				"step 3 of 8, ServiceMonitor lamp: the cluster does not have the kind ServiceMonitor of monitoring.coreos.com/v1; install what provides it", 2*day+61*time.Second)},
		}),
		"declared": subscription(transitionLog(first()...), operatorsv1alpha1.SubscriptionStatus{
			State: "AtLatestKnown", InstalledCSV: "lamp.v1", CurrentCSV: "lamp.v1", InstallPlanRef: &corev1.ObjectReference{Name: "install-aaa", UID: "aaa"},
			Conditions: []operatorsv1alpha1.SubscriptionCondition{condition("InstallPlanFailed", "InstallComponentFailed", "", day)},
		}),
		"new": subscription(nil, operatorsv1alpha1.SubscriptionStatus{
			Conditions: []operatorsv1alpha1.SubscriptionCondition{condition("ResolutionFailed", "ConstraintsNotSatisfiable", "no operators found in channel stable", 3*day)},
		}),
		"foreign": subscription(nil, operatorsv1alpha1.SubscriptionStatus{
			State: "AtLatestKnown", InstalledCSV: "lamp.v1", InstallPlanRef: &corev1.ObjectReference{Name: "install-xyz"},
		}),
		"unreadable": unreadable,
	}
}

func look(sub *operatorsv1alpha1.Subscription) timeline.Timeline {
	plans := []operatorsv1alpha1.InstallPlan{installPlan("bbb", "lamp.v2", "wick.v4"), installPlan("ccc", "lamp.v3")}
	plans[1].Status.Plan = []*operatorsv1alpha1.Step{{Status: operatorsv1alpha1.StepStatusCreated}, {Status: operatorsv1alpha1.StepStatusUnknown}}
	if ref := sub.Status.InstallPlanRef; ref != nil && ref.UID == "aaa" {
		settled := installPlan("aaa", "lamp.v1")
		settled.Status.Plan = []*operatorsv1alpha1.Step{{Status: operatorsv1alpha1.StepStatusCreated}, {Status: operatorsv1alpha1.StepStatusPresent}}
		plans = append(plans, settled)
	}
	return timeline.Of(sub, plans, "kubectl chandlery", begin.Add(3*day))
}

func TestTable(t *testing.T) {
	t.Parallel()
	for name, sub := range situations() {
		told := look(sub)
		compare(t, name+".txt", told.Table(zone))
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	told := look(situations()["waiting"])
	text, err := json.MarshalIndent(told, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "waiting.json", string(text)+"\n")
}

// compare compares a text with a golden file.
func compare(t *testing.T, name, got string) {
	t.Helper()
	golden := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s\nrun the test with -update if this is right", name, diff)
	}
}

// TestChanges follows a Subscription from its beginning, with reads that see one change, none, or many.
func TestChanges(t *testing.T) {
	t.Parallel()
	all := situations()
	deserted := all["failed"].DeepCopy()
	delete(deserted.Annotations, api.AnnotationTransitions)
	var (
		text   strings.Builder
		before timeline.Timeline
	)
	for _, sub := range []*operatorsv1alpha1.Subscription{
		all["new"], all["new"], all["installed"], all["waiting"], all["installed"], all["failed"], deserted, all["unreadable"],
	} {
		now := look(sub)
		text.WriteString(now.Changes(&before, zone) + "--\n")
		before = now
	}
	compare(t, "news.txt", text.String())
}

func TestRecords(t *testing.T) {
	t.Parallel()
	told := look(situations()["waiting"])
	for from, want := range map[int64]int{0: 6, 4: 2, 6: 0, 99: 6} {
		records := told.Records(from)
		if len(records) != want {
			t.Errorf("after %d there are %d, want %d", from, len(records), want)
		}
		for _, r := range records {
			if r.Lost != 0 || r.Lasted != nil || r.Namespace != "shop" {
				t.Errorf("after %d: %+v", from, r)
			}
		}
	}
	long := look(situations()["failed"])
	if records := long.Records(2); len(records) != 2 || records[0].Lost != 2 || records[1].Lost != 0 {
		t.Errorf("a gap is told as %+v", records)
	}
	var none timeline.Timeline
	if len(none.Records(0)) != 0 || none.Last() != 0 {
		t.Error("nothing is something")
	}
}
