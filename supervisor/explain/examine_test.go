package explain_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/explain"
)

func TestExplainSupervisor(t *testing.T) {
	t.Parallel()
	check(t, []explained{
		{
			reason: "no Lease", state: explain.Broken, code: explain.CodeSupervisorNotRunning, object: "Lease chandlery-supervisor",
			change: func(o *clusterState) { o.Leases = nil }, summary: []string{"no supervisor runs", "no Lease chandlery-supervisor"},
		},
		{
			reason: "a Lease that was given up", state: explain.Broken, code: explain.CodeSupervisorNotRunning, object: "Lease chandlery-system/chandlery-supervisor",
			change: func(o *clusterState) { o.Leases[0].Spec.HolderIdentity = new("") }, summary: []string{"was released"},
		},
		{
			reason: "a Lease that has run out comes before what statuses say", state: explain.Broken, code: explain.CodeSupervisorNotRunning,
			change: all(planIs(operatorsv1alpha1.InstallPlanPhaseRequiresApproval, "", ""), func(o *clusterState) {
				o.Leases[0].Spec.RenewTime = new(metav1.NewMicroTime(now.Add(-time.Hour)))
			}),
			summary: []string{"is held by supervisor-1 (no pod of namespace chandlery-system), which last renewed it at 2026-03-02T08:00:00Z"},
		},
		{
			reason: "a Lease that nobody may see where all has come to rest", state: explain.Healthy,
			change: all(hides("leases.coordination.k8s.io", ""), func(o *clusterState) { o.Leases = nil }), summary: []string{"lamp.v1 is installed"},
		},
		{
			reason: "a Lease that could not be read for the moment", state: explain.Unknown,
			change: func(o *clusterState) {
				o.Leases, o.Unreadable = nil, []explain.Unreadable{{Resource: "leases.coordination.k8s.io", Reason: explain.UnreadableUnreachable}}
			},
			summary: []string{"lamp.v1 is installed", "as far as can be seen"},
		},
		{
			reason: "a Lease that the user may not read, while something is in progress", state: explain.Unknown, code: explain.CodeInProgress,
			change:  all(hides("leases.coordination.k8s.io", ""), planIs(operatorsv1alpha1.InstallPlanPhaseInstalling, "", ""), func(o *clusterState) { o.Leases = nil }),
			summary: []string{"obstacles could not be checked"},
		},
		{
			reason: "a catalog that nobody may see and that the Subscription calls healthy", state: explain.Healthy,
			change: all(hides("catalogsources.operators.coreos.com", "olm"), func(o *clusterState) {
				o.CatalogSources = nil
				o.sub().Status.CatalogHealth = []operatorsv1alpha1.SubscriptionCatalogHealth{{CatalogSourceRef: &corev1.ObjectReference{Namespace: "olm", Name: "wares"}, Healthy: true}}
			}),
			summary: []string{"lamp.v1 is installed"},
		},
		{
			reason: "a catalog that nobody may see and the Subscription does not speak of", state: explain.Unknown,
			change:  all(hides("catalogsources.operators.coreos.com", "olm"), func(o *clusterState) { o.CatalogSources = nil }),
			summary: []string{"lamp.v1 is installed", "as far as can be seen"},
		},
		{
			reason: "Deployments that nobody may see", state: explain.Unknown,
			change:  all(hides("deployments.apps", "shop"), func(o *clusterState) { o.Deployments = nil }),
			summary: []string{"lamp.v1 is installed", "as far as can be seen"},
		},
		{
			reason: "no Subscription of that name", state: explain.Missing,
			change: func(o *clusterState) { o.Subscriptions = nil }, summary: []string{"no object has this name"},
		},
		{
			reason: "a Subscription that may not be seen", state: explain.Unknown,
			change: all(hides("subscriptions.operators.coreos.com", "shop"), func(o *clusterState) { o.Subscriptions = nil }), summary: []string{"you cannot read subscriptions.operators.coreos.com"},
		},
		{
			reason: "an API that is not there", state: explain.Missing, code: explain.CodeNotInstalled,
			change: func(o *clusterState) {
				o.Subscriptions = nil
				o.Unreadable = []explain.Unreadable{{Resource: "subscriptions.operators.coreos.com", Reason: explain.UnreadableNotInstalled}}
			},
			summary: []string{"not installed in this cluster"},
		},
	})
}

// TestExamine checks that a cause that affects several Subscriptions is reported once, and that the findings
// are in order of importance.
func TestExamine(t *testing.T) {
	t.Parallel()
	o := healthyState(all(catalogAway(), func(o *clusterState) {
		o.catalog().Status.GRPCConnectionState.LastObservedState = "TRANSIENT_FAILURE"
		o.catalog().Status.Message = "the catalog's content could not be read: connection refused; check it"
		second := *o.sub().DeepCopy()
		second.Name = "torch"
		third := *o.sub().DeepCopy()
		third.Name, third.Status.Conditions = "wick", nil
		third.Status.Conditions = []operatorsv1alpha1.SubscriptionCondition{{Type: operatorsv1alpha1.SubscriptionPackageDeprecated, Status: corev1.ConditionTrue, Message: "old"}}
		o.Subscriptions = append(o.Subscriptions, second, third)
	}))
	found := explain.Examine(o)
	if len(found) != 2 {
		t.Fatalf("found %d causes, want 2: %+v", len(found), found)
	}
	if found[0].Code != explain.CodeCatalogUnreachable || len(found[0].Affects) != 3 {
		t.Errorf("first is %s, which affects %v; want the catalog, which affects all three", found[0].Code, found[0].Affects)
	}
	if found[1].Severity != explain.Note {
		t.Errorf("last is %+v, want a note", found[1])
	}
	if got := explain.Examine(healthyState()); len(got) != 0 {
		t.Errorf("found %+v where all is well", got)
	}
}

// TestExamineUnavailablePackages has an APIService whose server does not answer.
func TestExamineUnavailablePackages(t *testing.T) {
	t.Parallel()
	o := healthyState()
	o.PackagesProblem = "MissingEndpoints: no endpoints"
	found := explain.Examine(o)
	if len(found) != 1 || found[0].Code != explain.CodePackageManifestsUnavailable || found[0].Severity != explain.Wrong ||
		found[0].Object.String() != "APIService v1.packages.operators.coreos.com" || !strings.HasSuffix(found[0].Cause, ": MissingEndpoints: no endpoints") {
		t.Errorf("findings: %+v", found)
	}
}

// TestCodes checks that every code is documented, once.
func TestCodes(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range explain.Codes() {
		if seen[c.Code] || c.Code == "" || c.Meaning == "" || c.Remedy == "" || !strings.HasSuffix(c.Remedy, ".") && !strings.HasSuffix(c.Remedy, "=true") {
			t.Errorf("code %+v is twice, or lacks something", c)
		}
		seen[c.Code] = true
	}
}

// TestRule checks the rule that permits reading hidden objects.
func TestRule(t *testing.T) {
	t.Parallel()
	rule := explain.Unreadable{Resource: "deployments.apps"}.Rule()
	if rule.APIGroups[0] != "apps" || rule.Resources[0] != "deployments" || !slices.Equal(rule.Verbs, []string{"get", "list"}) {
		t.Errorf("rule is %+v", rule)
	}
	if rule := (explain.Unreadable{Resource: "pods"}).Rule(); rule.APIGroups[0] != "" || rule.Resources[0] != "pods" {
		t.Errorf("rule is %+v", rule)
	}
}
