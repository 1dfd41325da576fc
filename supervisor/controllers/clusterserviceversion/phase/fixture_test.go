package phase

import (
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/providedapis"
)

// kettle returns an operator with one Deployment that supports its own namespace.
func kettle() *operatorsv1alpha1.ClusterServiceVersion {
	return &operatorsv1alpha1.ClusterServiceVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "kettle.v1", UID: "uid-1"},
		Spec: operatorsv1alpha1.ClusterServiceVersionSpec{
			InstallModes: []operatorsv1alpha1.InstallMode{{Type: operatorsv1alpha1.InstallModeTypeOwnNamespace, Supported: true}},
			InstallStrategy: operatorsv1alpha1.NamedInstallStrategy{
				StrategyName: operatorsv1alpha1.InstallStrategyNameDeployment,
				StrategySpec: operatorsv1alpha1.StrategyDetailsDeployment{
					DeploymentSpecs: []operatorsv1alpha1.StrategyDeploymentSpec{{
						Name:  "kettle",
						Label: map[string]string{"tier": "hot"},
						Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
							Containers: []corev1.Container{{Name: "manager", Image: "example.com/kettle:1"}},
						}}},
					}},
				},
			},
		},
	}
}

// noon is the time of every observation unless a test moves it.
func noon() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC) }

// good returns the observation of an operator without problems, in a phase that it has been in for
// a minute.
func good(phase operatorsv1alpha1.ClusterServiceVersionPhase, reason operatorsv1alpha1.ConditionReason, change ...func(*Observation)) Observation {
	since := metav1.NewTime(noon().Add(-time.Minute))
	updated := metav1.NewTime(noon().Add(-time.Hour))
	csv := kettle()
	csv.Status.Phase, csv.Status.Reason, csv.Status.Message, csv.Status.LastTransitionTime = phase, reason, "as before", &since
	o := Observation{
		CSV: csv,
		Now: noon(),
		Groups: []operatorsv1.OperatorGroup{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "own"},
			Status:     operatorsv1.OperatorGroupStatus{Namespaces: []string{"kitchen"}, LastUpdated: &updated},
		}},
		Requirements: Requirements{Met: true},
	}
	csv.Annotations = GroupAnnotations(&o.Groups[0])
	for _, c := range change {
		c(&o)
	}
	return o
}

func lacking(o *Observation) { o.Requirements.Met = false }

func conflict(o *Observation) { o.Requirements.CRDConflict = "cups.example.com is owned by csv pot.v1" }

func foreign(o *Observation) { o.Components.Foreign = "deployment \"kettle\" exists" }

func changed(o *Observation) { o.Components.Stale = "missing deployment with name=kettle" }

func gaveUp(o *Observation) { o.Components.Exhausted = "deployment kettle not ready before timeout: x" }

func waiting(o *Observation) {
	o.Components.Waiting = "waiting for deployment kettle to become ready: deployment \"kettle\" not available: none up"
}

func copyMissing(o *Observation) { o.ClusterRBAC.Stale = true }

func copyTaken(o *Observation) { o.ClusterRBAC.Foreign = "ClusterRole \"x\" exists" }

func noGroup(o *Observation) { o.Groups = nil }

func twoGroups(o *Observation) {
	o.Groups = append(slices.Clone(o.Groups), operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "other"}})
}

func selecting(o *Observation) { o.Groups[0].Spec.Selector = &metav1.LabelSelector{} }

func noModes(o *Observation) { o.CSV.Spec.InstallModes[0].Supported = false }

func freshGroup(o *Observation) {
	for i := range o.Groups {
		o.Groups[i].Status.LastUpdated = nil
	}
}

func bareCSV(o *Observation) { o.CSV.Annotations = nil }

func targeting(namespaces ...string) func(*Observation) {
	return func(o *Observation) {
		for i := range o.Groups {
			o.Groups[i].Status.Namespaces = namespaces
			o.CSV.Annotations = GroupAnnotations(&o.Groups[i])
		}
	}
}

func doubleModes(o *Observation) {
	o.CSV.Spec.InstallModes = append(o.CSV.Spec.InstallModes, o.CSV.Spec.InstallModes...)
}

func unservable(o *Observation) { o.Webhooks.Unsupported = "this version does not support webhooks" }

func invalidWebhook(o *Observation) {
	o.Webhooks.Invalid = "spec.webhookdefinitions[1].generateName is used twice"
}

func serviceTaken(o *Observation) { o.Webhooks.Conflict = "v1.tea.example.com belongs to csv pot.v1" }

func serviceBroken(o *Observation) { o.Webhooks.Broken = "secret kettle-service-cert is gone" }

func webhookGone(o *Observation) { o.Webhooks.Missing = "webhooks not installed" }

func notServing(o *Observation) { o.Webhooks.Waiting = "apiServices not installed" }

func probing(o *Observation) { o.Webhooks.Probing = true }

func moving(o *Observation) { o.Webhooks.Disrupted = "pods of kettle are being replaced" }

func toSwitch(o *Observation) { o.Webhooks.Switch.Due = true }

func oldCerts(o *Observation) { o.Webhooks.Certificates.Due = true }

func certificates(o *Observation) {
	o.Webhooks.Certificates.IssuedAt, o.Webhooks.Certificates.RotateAt = noon().Add(-time.Hour), noon().Add(time.Hour)
}

func corrected(o *Observation) { o.Components.Corrected = true }

func regranted(o *Observation) { o.Access.Changed = true }

func justGranted(o *Observation) { o.Access.Settling = true }

func badConfig(o *Observation) { o.Components.Invalid = "annotation chandlery.dev/config is no JSON" }

func running(o *Observation) { o.Components.Present = true }

func declaresWebhook(o *Observation) {
	o.CSV.Spec.WebhookDefinitions = []operatorsv1alpha1.WebhookDescription{{}}
}

func claim(result providedapis.Result) func(*Observation) {
	return func(o *Observation) {
		o.Claims = providedapis.Finding{Result: result, APIs: providedapis.Parse("Cup.v1.tea.example.com")}
		if result != providedapis.Static {
			o.Claims.Groups = []types.NamespacedName{{Namespace: "bar", Name: "all"}}
		}
	}
}

func mislabelled(o *Observation) {
	o.CSV.Labels = map[string]string{"olm.api.0": "provided", "other": "kept"}
}

func failingForward(o *Observation) {
	for i := range o.Groups {
		o.Groups[i].Spec.UpgradeStrategy = operatorsv1.UpgradeStrategyUnsafeFailForward
	}
}

func pinnedToSuccessor(o *Observation) { o.Replacement.Pinned = true }

func refusing(o *Observation) { o.Replacement.Refused = "brewing" }

func holding(o *Observation) { o.Replacement.Held = "brewing" }

func circular(o *Observation) { o.Replacement.Cycle = []string{"kettle.v1", "kettle.v2"} }

func vanished(o *Observation) { o.Replacement.Vanished = "kettle.v0" }

func readySuccessor(o *Observation) {
	o.Replacement.Successor = &Neighbour{Name: "kettle.v2", Phase: pending, Reason: "AllRequirementsMet"}
	o.Replacement.Last = o.Replacement.Successor
}

func helm(o *Observation) { o.CSV.Spec.InstallStrategy.StrategyName = "helm" }

func noDeployments(o *Observation) { o.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = nil }

func causing(c api.Cause) func(*Observation) {
	return func(o *Observation) { api.SetCause(o.CSV, &c) }
}

func later(d time.Duration) func(*Observation) {
	return func(o *Observation) { o.Now = noon().Add(d) }
}

func predecessor(phase operatorsv1alpha1.ClusterServiceVersionPhase) func(*Observation) {
	return func(o *Observation) { o.Replacement.Predecessor = &Neighbour{Name: "kettle.v0", Phase: phase} }
}

func successor(phase operatorsv1alpha1.ClusterServiceVersionPhase) func(*Observation) {
	return func(o *Observation) {
		o.Replacement.Successor = &Neighbour{Name: "kettle.v2", Phase: phase}
		o.Replacement.Last = o.Replacement.Successor
	}
}

// going returns a version that is being deleted.
func going(csv *operatorsv1alpha1.ClusterServiceVersion) *operatorsv1alpha1.ClusterServiceVersion {
	csv.DeletionTimestamp = &metav1.Time{Time: noon()}
	return csv
}
