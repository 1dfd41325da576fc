package subscription

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

const (
	planPending = operatorsv1alpha1.SubscriptionInstallPlanPending
	planFailed  = operatorsv1alpha1.SubscriptionInstallPlanFailed
	planMissing = operatorsv1alpha1.SubscriptionInstallPlanMissing
	unresolved  = operatorsv1alpha1.SubscriptionResolutionFailed
	unpacked    = operatorsv1alpha1.SubscriptionBundleUnpackFailed
	unhealthy   = operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy
)

// brief returns conditions as type=status reason message, without the one about catalogs.
func brief(conditions []operatorsv1alpha1.SubscriptionCondition) []string {
	var list []string
	for _, c := range conditions {
		if c.Type != unhealthy {
			list = append(list, string(c.Type)+"="+string(c.Status)+" "+c.Reason+": "+c.Message)
		}
	}
	return list
}

func TestStatusOf(t *testing.T) {
	const none, pendingState, latest = operatorsv1alpha1.SubscriptionStateNone, operatorsv1alpha1.SubscriptionStateUpgradePending, operatorsv1alpha1.SubscriptionStateAtLatest
	state := read(t)
	lamp := subscription("my", "lamp")
	refers := subscription("my", "lamp", func(sub *operatorsv1alpha1.Subscription) {
		sub.Status.InstallPlanRef = &corev1.ObjectReference{Name: "gone", UID: "uid-gone"}
		sub.Status.CurrentCSV = "lamp.v2"
	})
	v2 := version("lamp.v2", "lamp", succeeded)
	blocked := installPlan("p", "lamp.v2", operatorsv1alpha1.InstallPlanPhaseInstalling, 3, lamp)
	blocked.Status.Message = "retrying execution due to error: no"
	lost := installPlan("p", "lamp.v2", operatorsv1alpha1.InstallPlanPhaseFailed, 3, lamp)
	lost.Status.Conditions = []operatorsv1alpha1.InstallPlanCondition{{Type: operatorsv1alpha1.InstallPlanInstalled, Status: "False", Reason: operatorsv1alpha1.InstallPlanReasonComponentFailed, Message: "no such API"}}
	for _, tt := range []struct {
		reason             string
		sub                *operatorsv1alpha1.Subscription
		csvs               []*operatorsv1alpha1.ClusterServiceVersion
		plan               *operatorsv1alpha1.InstallPlan // an existing plan; also the decision when something is installed
		current, installed string
		state              operatorsv1alpha1.SubscriptionState
		ref                string
		generation         int
		conditions         []string
	}{
		{reason: "a plan is there that has not begun", sub: lamp, plan: installPlan("p", "lamp.v2", "", 3, lamp), state: none, ref: "p", generation: 3, conditions: []string{"InstallPlanPending=True InstallPlanNotYetReconciled: "}},
		{reason: "the bundle of a plan is not there yet", sub: lamp, plan: installPlan("p", "lamp.v2", "Planning", 3, lamp), state: none, ref: "p", generation: 3, conditions: []string{"InstallPlanPending=True Planning: "}},
		{reason: "the bundle of an update is not there yet", sub: lamp, csvs: []*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v1", "lamp", succeeded)}, plan: installPlan("p", "lamp.v2", "Planning", 3, lamp), current: "lamp.v1", installed: "lamp.v1", state: pendingState, ref: "p", generation: 3, conditions: []string{"InstallPlanPending=True Planning: "}},
		{reason: "a status from before names what cannot be had", sub: subscription("my", "lamp", knows("lamp.v2", "lamp.v1")), csvs: []*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v1", "lamp", succeeded)}, plan: installPlan("p", "lamp.v2", "Planning", 3, lamp), current: "lamp.v1", installed: "lamp.v1", state: pendingState, ref: "p", generation: 3, conditions: []string{"InstallPlanPending=True Planning: "}},
		{reason: "a plan waits for approval", sub: lamp, plan: installPlan("p", "lamp.v2", "RequiresApproval", 3, lamp), current: "lamp.v2", state: pendingState, ref: "p", generation: 3, conditions: []string{"InstallPlanPending=True RequiresApproval: "}},
		{reason: "a plan is held up", sub: lamp, plan: blocked, current: "lamp.v2", state: pendingState, ref: "p", generation: 3, conditions: []string{"InstallPlanPending=True Installing: "}},
		{reason: "a plan failed", sub: lamp, plan: lost, current: "lamp.v2", state: pendingState, ref: "p", generation: 3, conditions: []string{"InstallPlanFailed=True InstallComponentFailed: no such API"}},
		{reason: "a plan is done and the version well", sub: lamp, csvs: []*operatorsv1alpha1.ClusterServiceVersion{v2}, plan: installPlan("p", "lamp.v2", "Complete", 3, lamp), current: "lamp.v2", installed: "lamp.v2", state: latest, ref: "p", generation: 3},
		{reason: "the version is well, its last parts are not there", sub: lamp, csvs: []*operatorsv1alpha1.ClusterServiceVersion{v2}, plan: installPlan("p", "lamp.v2", "Installing", 3, lamp), current: "lamp.v2", installed: "lamp.v2", state: latest, ref: "p", generation: 3, conditions: []string{"InstallPlanPending=True Installing: "}},
		{reason: "the plan of a version that is well was removed", sub: refers, csvs: []*operatorsv1alpha1.ClusterServiceVersion{v2}, current: "lamp.v2", installed: "lamp.v2", state: latest, ref: "gone", conditions: []string{"InstallPlanMissing=True ReferencedInstallPlanNotFound: "}},
		{reason: "an update is under way", sub: lamp, csvs: []*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v1", "lamp", replacing), version("lamp.v2", "lamp", installing, replaces("lamp.v1"))}, current: "lamp.v2", installed: "lamp.v1", state: pendingState, conditions: []string{"NewerVersionHeld=True : clusterserviceversion lamp.v2 is in phase Installing: ; lamp.v1 stays installed until then"}},
		{reason: "what was referred to brought nothing", sub: subscription("my", "gone", func(sub *operatorsv1alpha1.Subscription) { sub.Status = refers.Status }), state: none, conditions: []string{
			"ResolutionFailed=True ConstraintsNotSatisfiable: constraints not satisfiable: no operators found in package gone in the catalog referenced by subscription my, subscription my exists",
			"Blocked=True PackageNotFound: the catalog has 3 packages; check spec.name",
		}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			o := observed(state, tt.sub).with(tt.csvs)
			if tt.plan != nil {
				o.plans[tt.plan.Name] = tt.plan
			}
			d := decided(t, o)[0]
			var planned *operatorsv1alpha1.InstallPlan
			if d.install != nil {
				planned = tt.plan
			}
			got := statusOf(o, d, planned, at(5))
			if got.CurrentCSV != tt.current || got.InstalledCSV != tt.installed || got.State != tt.state {
				t.Errorf("current %q, installed %q, state %q; want %q, %q, %q", got.CurrentCSV, got.InstalledCSV, got.State, tt.current, tt.installed, tt.state)
			}
			ref := ""
			if got.InstallPlanRef != nil {
				ref = got.InstallPlanRef.Name
			}
			if ref != tt.ref || got.InstallPlanGeneration != tt.generation {
				t.Errorf("refers to plan %q of generation %d, want %q, %d", ref, got.InstallPlanGeneration, tt.ref, tt.generation)
			}
			conditions := brief(got.Conditions)
			if diff := cmp.Diff(tt.conditions, conditions); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			// Deriving again from the written status changes nothing.
			again := tt.sub.DeepCopy()
			again.Status = got
			o.subscriptions[0] = again
			d = decided(t, o)[0]
			if d.install == nil {
				planned = nil
			}
			next := statusOf(o, d, planned, at(9))
			if changed(got, next, equality.Semantic.DeepEqual) {
				t.Errorf("nothing happened and the status changed:\n%s", cmp.Diff(got, next))
			}
		})
	}
}

func TestFailure(t *testing.T) {
	for _, tt := range []struct {
		err    error
		kind   operatorsv1alpha1.SubscriptionConditionType
		reason string
	}{
		{err: &resolution.UnsatisfiableError{}, kind: unresolved, reason: "ConstraintsNotSatisfiable"},
		{err: &resolution.CatalogError{Err: errors.New("away")}, kind: unresolved, reason: "ErrorPreventedResolution"},
		{err: &planError{err: plansteps.ErrNoInlineManifests}, kind: unpacked, reason: "ErrorPreventedUnpacking"},
		{err: &planError{err: errContentUnknown}, kind: unpacked, reason: "ErrorPreventedUnpacking"},
		{err: &planError{err: errors.New("no")}, kind: unpacked, reason: "EnsureInstallPlanFailed"},
	} {
		if got := failure(tt.err); got.Type != tt.kind || got.Reason != tt.reason || got.Status != corev1.ConditionTrue || (got.Message == "" && tt.err.Error() != "") {
			t.Errorf("failure(%v) = %+v, want %s %s", tt.err, got, tt.kind, tt.reason)
		}
	}
	for _, err := range []error{
		&resolution.CatalogError{Err: fmt.Errorf("%w: nothing answers", catalogs.ErrNotConnected)},
		&planError{err: fmt.Errorf("reading bundle lamp.v1: %w", catalogs.ErrNotConnected)},
		&planError{err: fmt.Errorf("reading bundle lamp.v1: %w", grpcstatus.Error(codes.Unavailable, "connection refused"))},
	} {
		if got := blocked(err); got.Reason != api.ReasonCatalogUnavailable || !strings.HasSuffix(got.Message, remedyUnavailable) {
			t.Errorf("a catalog that is away: %+v", got)
		}
	}
	for err, want := range map[error]string{
		fmt.Errorf("%w: nothing answers", catalogs.ErrNotConnected): "error using catalogsource olm/shop: no registry client established for catalogsource olm/shop",
		grpcstatus.Error(codes.Unavailable, "connection refused"):   "error using catalogsource olm/shop: failed to list bundles: rpc error: code = Unavailable desc = connection refused",
		errors.New("no channel heads"):                              "error using catalogsource olm/shop: no channel heads",
	} {
		if got := failure(&resolution.CatalogError{Catalog: resolution.CatalogKey{Namespace: "olm", Name: "shop"}, Err: err}).Message; got != want {
			t.Errorf("message %q, want %q", got, want)
		}
	}
	if got := failure(&planError{err: errors.New("no")}).Message; got != "error ensuring InstallPlan: no" {
		t.Errorf("message %q", got)
	}
}

// TestStateAfterFailure checks that a Subscription is UpgradeFailed only if no version works.
func TestStateAfterFailure(t *testing.T) {
	broken := &operatorsv1alpha1.ClusterServiceVersion{Status: operatorsv1alpha1.ClusterServiceVersionStatus{Phase: operatorsv1alpha1.CSVPhaseFailed}}
	unusable := &planError{err: plansteps.ErrNoInlineManifests}
	for _, tt := range []struct {
		reason             string
		current, installed string
		version            *operatorsv1alpha1.ClusterServiceVersion
		err                error
		want               operatorsv1alpha1.SubscriptionState
	}{
		{reason: "nothing is installed and the bundle cannot be used", err: unusable, want: operatorsv1alpha1.SubscriptionStateFailed},
		{reason: "nothing is installed and the bundle is invalid", err: &planError{err: &invalidBundleError{err: errors.New("no")}}, want: operatorsv1alpha1.SubscriptionStateFailed},
		{reason: "nothing is installed and the plan was not created", err: &planError{err: errors.New("no")}, want: operatorsv1alpha1.SubscriptionStateNone},
		{reason: "nothing is installed and the version failed", current: "lamp.v1", version: broken, want: operatorsv1alpha1.SubscriptionStateFailed},
		{reason: "a version works and the bundle of its update cannot be used", current: "lamp.v1", installed: "lamp.v1", err: unusable, want: operatorsv1alpha1.SubscriptionStateAtLatest},
		{reason: "the installed version failed", current: "lamp.v1", installed: "lamp.v1", version: broken, want: operatorsv1alpha1.SubscriptionStateAtLatest},
		{reason: "nothing is installed and the resolution failed", err: &resolution.UnsatisfiableError{}, want: operatorsv1alpha1.SubscriptionStateNone},
	} {
		d := &decision{subscription: subscription("my", "lamp"), err: tt.err}
		d.present.current = tt.version
		status := operatorsv1alpha1.SubscriptionStatus{CurrentCSV: tt.current, InstalledCSV: tt.installed}
		if got := stateOf(observed(read(t)), status, d, nil); got != tt.want {
			t.Errorf("%s: state %q, want %q", tt.reason, got, tt.want)
		}
	}
}

func TestCatalogCondition(t *testing.T) {
	state := read(t)
	away := state
	away.Connectivity, away.ReadAt = "TRANSIENT_FAILURE", start
	sub := subscription("my", "lamp")
	elsewhere := subscription("my", "lamp", func(sub *operatorsv1alpha1.Subscription) { sub.Spec.CatalogSource = "gone" })
	without := observed(state)
	without.catalogs = nil
	for _, tt := range []struct {
		o               *namespaceState
		sub             *operatorsv1alpha1.Subscription
		status          corev1.ConditionStatus
		reason, message string
	}{
		{o: observed(state), sub: sub, status: "False", reason: "AllCatalogSourcesHealthy", message: "all available catalogsources are healthy"},
		{o: observed(away), sub: sub, status: "True", reason: "UnhealthyCatalogSourceFound", message: "targeted catalogsource olm/shop unhealthy"},
		{o: observed(state), sub: elsewhere, status: "True", reason: "UnhealthyCatalogSourceFound", message: "targeted catalogsource olm/gone missing"},
		{o: without, sub: sub, status: "True", reason: "NoCatalogSourcesFound", message: "dependency resolution requires at least one catalogsource"},
	} {
		got := catalogCondition(tt.o, tt.sub)
		if got.Type != unhealthy || got.Status != tt.status || got.Reason != tt.reason || got.Message != tt.message {
			t.Errorf("%+v, want %s %s %s", got, tt.status, tt.reason, tt.message)
		}
	}
}

func TestMergeConditions(t *testing.T) {
	old, now := at(0), at(5)
	condition := func(kind operatorsv1alpha1.SubscriptionConditionType, reason string, minute int) operatorsv1alpha1.SubscriptionCondition {
		c := isTrue(kind, reason, "text")
		when := at(minute)
		c.LastTransitionTime = &when
		return c
	}
	wanted := []operatorsv1alpha1.SubscriptionCondition{isTrue(unresolved, "a", "text"), isTrue(unhealthy, "b", "text")}
	before := []operatorsv1alpha1.SubscriptionCondition{
		condition("Foreign", "x", 0), condition(unresolved, "a", 0), condition(unhealthy, "other", 0), condition(planPending, "c", 0), condition(planFailed, "c", 0), condition(planMissing, "c", 0),
	}
	want := []operatorsv1alpha1.SubscriptionCondition{condition("Foreign", "x", 0), condition(unresolved, "a", 0), condition(unhealthy, "b", 5)}
	if diff := cmp.Diff(want, mergeConditions(before, wanted, now)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	// A condition keeps its place, whatever its type.
	slices.Reverse(before)
	slices.Reverse(want)
	if diff := cmp.Diff(want, mergeConditions(before, wanted, now)); diff != "" {
		t.Errorf("reversed conditions (-want +got):\n%s", diff)
	}
	// A new one is appended.
	want = append(want, condition(api.ConditionBlocked, "d", 5))
	if diff := cmp.Diff(want, mergeConditions(before, append(wanted, isTrue(api.ConditionBlocked, "d", "text")), now)); diff != "" {
		t.Errorf("with a new condition (-want +got):\n%s", diff)
	}
	if got := mergeConditions(nil, nil, old); len(got) != 0 {
		t.Errorf("out of nothing: %v", got)
	}
}

func TestCatalogHealth(t *testing.T) {
	state := read(t)
	o := observed(state)
	for _, key := range []types.NamespacedName{{Namespace: "home", Name: "b"}, {Namespace: "home", Name: "a"}} {
		c := o.catalogs[shop]
		c.Source = c.Source.DeepCopy()
		c.Source.UID, c.State.Connectivity = types.UID(key.String()), "IDLE"
		o.catalogs[key] = c
	}
	got := catalogHealth(o.catalogs, nil, at(0))
	var names []string
	for _, h := range got {
		name := h.CatalogSourceRef.Namespace + "/" + h.CatalogSourceRef.Name
		if h.Healthy {
			name += " healthy"
		}
		names = append(names, name)
	}
	if diff := cmp.Diff([]string{"home/a", "home/b", "olm/shop healthy"}, names); diff != "" {
		t.Errorf("catalogs (-want +got):\n%s", diff)
	}
	c := o.catalogs[shop]
	c.State.Connectivity = "IDLE"
	o.catalogs[shop] = c
	next := catalogHealth(o.catalogs, got, at(5))
	if diff := cmp.Diff(got[:2], next[:2]); diff != "" {
		t.Errorf("entries that say the same changed:\n%s", diff)
	}
	if want := at(5); next[2].Healthy || !next[2].LastUpdated.Equal(&want) {
		t.Errorf("the catalog that went away: %+v", next[2])
	}
}

// TestStatusWhileASnapshotIsConfirmed has a catalog that a restarted supervisor knows from disk. Its health stays as it was.
func TestStatusWhileASnapshotIsConfirmed(t *testing.T) {
	confirming := read(t)
	confirming.Inherited, confirming.Connectivity = true, "CONNECTING"
	failed := confirming
	failed.Connectivity = "TRANSIENT_FAILURE"
	before := operatorsv1alpha1.SubscriptionStatus{
		CatalogHealth: catalogHealth(observed(read(t)).catalogs, nil, at(0)),
		Conditions:    []operatorsv1alpha1.SubscriptionCondition{catalogCondition(observed(read(t)), subscription("my", "lamp"))},
	}
	sub := subscription("my", "lamp", func(sub *operatorsv1alpha1.Subscription) { sub.Status = before })
	for reason, c := range map[string]struct {
		state   catalogs.State
		healthy bool
	}{"confirming": {confirming, true}, "failed": {failed, false}} {
		o := observed(c.state, sub)
		if got := catalogHealth(o.catalogs, before.CatalogHealth, at(5)); len(got) != 1 || got[0].Healthy != c.healthy {
			t.Errorf("%s: health %+v", reason, got)
		}
		got := catalogConditions(o, &decision{subscription: sub}, before)
		if len(got) != 1 || got[0].Type != unhealthy || (got[0].Status == corev1.ConditionFalse) != c.healthy {
			t.Errorf("%s: conditions %+v", reason, got)
		}
	}
}

// TestStatusWithoutCatalog checks that a version in progress stays in the status while the catalog
// does not answer.
func TestStatusWithoutCatalog(t *testing.T) {
	sub := subscription("my", "lamp", func(sub *operatorsv1alpha1.Subscription) { sub.Spec.CatalogSource = "gone" })
	o := observed(read(t), sub).with([]*operatorsv1alpha1.ClusterServiceVersion{version("lamp.v1", "lamp", succeeded)})
	for _, p := range []*operatorsv1alpha1.InstallPlan{
		installPlan("done", "lamp.v1", operatorsv1alpha1.InstallPlanPhaseComplete, 1, sub),
		installPlan("open", "lamp.v2", operatorsv1alpha1.InstallPlanPhaseRequiresApproval, 2, sub),
	} {
		o.plans[p.Name] = p
	}
	got := statusOf(o, decided(t, o)[0], nil, at(5))
	if got.CurrentCSV != "lamp.v2" || got.InstalledCSV != "lamp.v1" || got.State != operatorsv1alpha1.SubscriptionStateUpgradePending || got.InstallPlanRef.Name != "open" {
		t.Errorf("got %+v", got)
	}
}

// TestVersionCondition checks that a Subscription reports an unhealthy version, and no version that
// is being installed.
func TestVersionCondition(t *testing.T) {
	sub := subscription("my", "lamp")
	in := func(phase operatorsv1alpha1.ClusterServiceVersionPhase, reason operatorsv1alpha1.ConditionReason) *operatorsv1alpha1.ClusterServiceVersion {
		csv := version("lamp.v1", "lamp", phase)
		csv.Status.Reason, csv.Status.Message = reason, "the lamp is out"
		return csv
	}
	for _, tt := range []struct {
		reason string
		csv    *operatorsv1alpha1.ClusterServiceVersion
		plan   operatorsv1alpha1.InstallPlanPhase
		want   []string
	}{
		{reason: "failed, with a newer one waiting", csv: in("Failed", "ComponentUnhealthy"), plan: "Complete", want: []string{"lamp.v1 is in phase Failed: the lamp is out", "lamp.v2 is available and will be installed once lamp.v1 is healthy, or at once if spec.upgradeStrategy of OperatorGroup group is TechPreviewUnsafeFailForward"}},
		{reason: "it lacks something though its plan is done", csv: in("Pending", "RequirementsNotMet"), plan: "Complete", want: []string{"phase Pending", "requirementStatus", "delete InstallPlan p"}},
		{reason: "its plan is not done", csv: in("Pending", "RequirementsNotMet"), plan: "Installing"},
		{reason: "being installed", csv: in("Installing", "InstallWaiting"), plan: "Complete"},
		{reason: "well", csv: in("Succeeded", "InstallSucceeded"), plan: "Complete"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			o := observed(read(t), sub).with([]*operatorsv1alpha1.ClusterServiceVersion{tt.csv}, installPlan("p", "lamp.v1", tt.plan, 1, sub))
			d := decided(t, o)[0]
			got := statusOf(o, d, nil, at(1)).GetCondition(api.ConditionVersionUnhealthy)
			if (got.Status == corev1.ConditionTrue) != (tt.want != nil) {
				t.Errorf("condition %+v", got)
			}
			for _, want := range tt.want {
				if !strings.Contains(got.Message, want) {
					t.Errorf("message %q does not contain %q", got.Message, want)
				}
			}
		})
	}
}
