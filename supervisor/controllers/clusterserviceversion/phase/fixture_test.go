package phase

import (
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/providedapis"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// kettle returns an operator with one Deployment that supports its own namespace.
func kettle() *operatorsv1alpha1.ClusterServiceVersion {
	csv := fixtures.Kettle("kitchen", "kettle.v1", operatorsv1alpha1.InstallModeTypeOwnNamespace)
	csv.UID = "uid-1"
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Label = map[string]string{"tier": "hot"}
	return csv
}

// noon is the time of every observation unless a test moves it.
func noon() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC) }

// good returns the observation of an operator without problems, in a phase that it has been in for
// a minute.
func good(phase operatorsv1alpha1.ClusterServiceVersionPhase, reason operatorsv1alpha1.ConditionReason, change ...func(*Input)) Input {
	since := metav1.NewTime(noon().Add(-time.Minute))
	updated := metav1.NewTime(noon().Add(-time.Hour))
	csv := kettle()
	csv.Status.Phase, csv.Status.Reason, csv.Status.Message, csv.Status.LastTransitionTime = phase, reason, "as before", &since
	o := Input{
		CSV: csv,
		Now: noon(),
		Groups: []operatorsv1.OperatorGroup{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "own"},
			Status:     operatorsv1.OperatorGroupStatus{Namespaces: []string{"kitchen"}, LastUpdated: &updated},
		}},
		Requirements: Requirements{Met: true},
	}
	csv.Annotations, csv.Labels = GroupAnnotations(&o.Groups[0]), Labels(csv, &o.Groups[0])
	for _, c := range change {
		c(&o)
	}
	return o
}

func lacking(o *Input) { o.Requirements.Met = false }

func conflict(o *Input) { o.Requirements.CRDConflict = "cups.example.com is owned by csv pot.v1" }

func ownedByOther(o *Input) { o.Components.OwnerConflict = "deployment \"kettle\" exists" }

func changed(o *Input) { o.Components.Stale = "missing deployment with name=kettle" }

func gaveUp(o *Input) {
	o.Components.DeadlineExceeded = "deployment kettle not ready before timeout: x"
}

func waiting(o *Input) {
	o.Components.Waiting = "waiting for deployment kettle to become ready: deployment \"kettle\" not available: none up"
}

func copyMissing(o *Input) { o.ClusterRBAC.Stale = true }

func copyTaken(o *Input) { o.ClusterRBAC.OwnerConflict = "ClusterRole \"x\" exists" }

func noGroup(o *Input) { o.Groups = nil }

func twoGroups(o *Input) {
	o.Groups = append(slices.Clone(o.Groups), operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "other"}})
}

func selecting(o *Input) { o.Groups[0].Spec.Selector = &metav1.LabelSelector{} }

func noModes(o *Input) { o.CSV.Spec.InstallModes[0].Supported = false }

func freshGroup(o *Input) {
	for i := range o.Groups {
		o.Groups[i].Status.LastUpdated = nil
	}
}

func bareCSV(o *Input) { o.CSV.Annotations = nil }

func targeting(namespaces ...string) func(*Input) {
	return func(o *Input) {
		for i := range o.Groups {
			o.Groups[i].Status.Namespaces = namespaces
			o.CSV.Annotations, o.CSV.Labels = GroupAnnotations(&o.Groups[i]), Labels(o.CSV, &o.Groups[i])
		}
	}
}

func doubleModes(o *Input) {
	o.CSV.Spec.InstallModes = append(o.CSV.Spec.InstallModes, o.CSV.Spec.InstallModes...)
}

// lastCause is the cause that refusedAccount sets.
var lastCause = &api.Cause{Reason: "PermissionDenied", Remedy: "grant it"}

func refusedAccount(o *Input) { api.SetCause(o.CSV, lastCause) }

func unservable(o *Input) { o.Webhooks.Unsupported = "this version does not support webhooks" }

func invalidWebhook(o *Input) {
	o.Webhooks.Invalid = Sentence{Text: "CSV contains repeated WebhookDescription name", Detail: "spec.webhookdefinitions[1].generateName is used twice"}
}

func serviceTaken(o *Input) { o.Webhooks.Conflict = "v1.tea.example.com belongs to csv pot.v1" }

func serviceBroken(o *Input) { o.Webhooks.Broken = "secret kettle-service-cert is gone" }

func webhookGone(o *Input) { o.Webhooks.Missing = "webhooks not installed" }

func notServing(o *Input) { o.Webhooks.Waiting = Sentence{Text: "apiServices not installed"} }

func probing(o *Input) { o.Webhooks.Probing = true }

func moving(o *Input) { o.Webhooks.Disrupted = "pods of kettle are being replaced" }

func toSwitch(o *Input) { o.Webhooks.Switch.Due = true }

func oldCerts(o *Input) { o.Webhooks.Certificates.Due = true }

func certificates(o *Input) {
	o.Webhooks.Certificates.IssuedAt, o.Webhooks.Certificates.RotateAt = noon().Add(-time.Hour), noon().Add(time.Hour)
}

func corrected(o *Input) { o.Components.Corrected = true }

func regranted(o *Input) { o.Access.Changed = true }

func justGranted(o *Input) { o.Access.Settling = true }

func badConfig(o *Input) { o.Components.Invalid = "annotation chandlery.dev/config is no JSON" }

func running(o *Input) { o.Components.Present = true }

func declaresWebhook(o *Input) {
	o.CSV.Spec.WebhookDefinitions = []operatorsv1alpha1.WebhookDescription{{}}
}

func claim(result providedapis.Result) func(*Input) {
	return func(o *Input) {
		o.Claims = providedapis.Finding{Result: result, APIs: providedapis.Parse("Cup.v1.tea.example.com")}
		if result != providedapis.Static {
			o.Claims.Groups = []types.NamespacedName{{Namespace: "bar", Name: "all"}}
		}
	}
}

func mislabelled(o *Input) {
	o.CSV.Labels = map[string]string{"olm.api.0": "provided", "other": "kept"}
}

func failingForward(o *Input) {
	for i := range o.Groups {
		o.Groups[i].Spec.UpgradeStrategy = operatorsv1.UpgradeStrategyUnsafeFailForward
	}
}

func pinnedToSuccessor(o *Input) { o.Replacement.Pinned = true }

func refusing(o *Input) { o.Replacement.PredecessorNotUpgradeable = "brewing" }

func holding(o *Input) { o.Replacement.NotUpgradeable = "brewing" }

func circular(o *Input) { o.Replacement.Cycle = []string{"kettle.v1", "kettle.v2"} }

func vanished(o *Input) { o.Replacement.MissingPredecessor = "kettle.v0" }

func readySuccessor(o *Input) {
	o.Replacement.Successor = &Neighbour{Name: "kettle.v2", Phase: pending, Reason: "AllRequirementsMet"}
	o.Replacement.Last = o.Replacement.Successor
}

func helm(o *Input) { o.CSV.Spec.InstallStrategy.StrategyName = "helm" }

func noDeployments(o *Input) { o.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = nil }

func causing(c api.Cause) func(*Input) {
	return func(o *Input) { api.SetCause(o.CSV, &c) }
}

func later(d time.Duration) func(*Input) {
	return func(o *Input) { o.Now = noon().Add(d) }
}

func predecessor(phase operatorsv1alpha1.ClusterServiceVersionPhase) func(*Input) {
	return func(o *Input) { o.Replacement.Predecessor = &Neighbour{Name: "kettle.v0", Phase: phase} }
}

func successor(phase operatorsv1alpha1.ClusterServiceVersionPhase) func(*Input) {
	return func(o *Input) {
		o.Replacement.Successor = &Neighbour{Name: "kettle.v2", Phase: phase}
		o.Replacement.Last = o.Replacement.Successor
	}
}

// going returns a version that is being deleted.
func going(csv *operatorsv1alpha1.ClusterServiceVersion) *operatorsv1alpha1.ClusterServiceVersion {
	csv.DeletionTimestamp = &metav1.Time{Time: noon()}
	return csv
}
