package phase

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/providedapis"
)

func allPhases() []operatorsv1alpha1.ClusterServiceVersionPhase {
	return []operatorsv1alpha1.ClusterServiceVersionPhase{none, pending, ready, installs, succeeded, broken, replacing, deleting, unknown}
}

func allReasons() []operatorsv1alpha1.ConditionReason {
	return []operatorsv1alpha1.ConditionReason{
		"", "RequirementsUnknown", "RequirementsNotMet", "AllRequirementsMet", "OwnerConflict", "InstallComponentFailed",
		"InstallComponentFailedNoRetry", "InvalidInstallStrategy", "InstallWaiting", "InstallSucceeded", "InstallCheckFailed",
		"ComponentUnhealthy", "BeingReplaced", "Replaced", "NeedsReinstall", "InvalidInstallModes", "NoTargetNamespaces",
		"UnsupportedOperatorGroup", "NoOperatorGroup", "TooManyOperatorGroups", "DetectedClusterChange",
		"NeedsCertRotation", "APIServiceResourceIssue", "APIServiceResourcesNeedReinstall", "APIServiceInstallFailed",
		"InterOperatorGroupOwnerConflict", "CannotModifyStaticOperatorGroupProvidedAPIs", "InvalidWebhookDescription",
		"OperatorConditionNotUpgradeable", "WaitingOnCleanup",
	}
}

// troubles returns all ways in which an observation can differ from a good one.
func troubles() []func(*Input) {
	return []func(*Input){
		lacking, conflict, ownedByOther, changed, gaveUp, waiting, copyMissing, copyTaken, noGroup, twoGroups, freshGroup, bareCSV,
		targeting(""), targeting(), doubleModes, unservable, invalidWebhook, helm, noDeployments, later(10 * time.Minute),
		predecessor(pending), predecessor(succeeded), predecessor(replacing), predecessor(deleting), predecessor(broken),
		successor(pending), successor(succeeded), successor(broken), successor(replacing), readySuccessor,
		serviceTaken, serviceBroken, webhookGone, notServing, moving, toSwitch, oldCerts, certificates, badConfig, running, regranted, justGranted,
		declaresWebhook, claim(providedapis.Add), claim(providedapis.Remove), claim(providedapis.Conflict), claim(providedapis.Static),
		claim(providedapis.UpToDate), mislabelled, failingForward, refusing, holding, circular, vanished,
		leavingPredecessor(succeeded, "WaitingOnCleanup"), leavingPredecessor(broken, ""),
	}
}

// follow applies a transition as the reconciler does.
func follow(o *Input, t Transition) {
	o.CSV.Status = Status(o.CSV.Status, t, *o)
	api.SetCause(o.CSV, t.Cause)
	for _, a := range t.Actions {
		switch a {
		case Annotate:
			o.CSV.Annotations, o.CSV.Labels = GroupAnnotations(&o.Groups[0]), Labels(o.CSV, &o.Groups[0])
		case PrepareWebhooks:
			o.Webhooks.Certificates.Due, o.Webhooks.Broken, o.Webhooks.Missing = false, "", ""
		case RenewCertificates:
			o.Webhooks.Certificates.RenewDue = false
		case Switch:
			o.Webhooks.Switch.Due = false
		case RemoveDeployments:
			o.Components.Present = false
		case Install:
			o.Components.Stale, o.ClusterRBAC.Stale = "", false
		case CopyRBAC:
			o.ClusterRBAC.Stale = false
		case DeleteSelf:
		}
	}
	o.Now = o.Now.Add(max(t.After, 0))
}

// TestNoDeadEnd checks that an operator without remaining problems reaches Succeeded from every
// phase, whatever its status and its earlier problems.
func TestNoDeadEnd(t *testing.T) {
	type standing struct {
		phase  operatorsv1alpha1.ClusterServiceVersionPhase
		reason operatorsv1alpha1.ConditionReason
	}
	ends := map[standing]bool{}
	for _, phase := range allPhases() {
		for _, reason := range allReasons() {
			for i, one := range troubles() {
				for j, two := range troubles()[i:] {
					bad := good(phase, reason, one, two)
					next := Next(bad)
					// The result of a transition without problems depends on nothing else.
					from := standing{next.Phase, next.Reason}
					if ends[from] {
						continue
					}
					follow(&bad, next)
					o := good(bad.CSV.Status.Phase, bad.CSV.Status.Reason, later(0))
					for step := 0; step < 20 && o.CSV.Status.Phase != succeeded; step++ {
						follow(&o, Next(o))
					}
					if o.CSV.Status.Phase != succeeded {
						t.Fatalf("from %s (%s) with troubles %d and %d: ended in %s (%s: %s)",
							phase, reason, i, i+j, o.CSV.Status.Phase, o.CSV.Status.Reason, o.CSV.Status.Message)
					}
					ends[from] = true
				}
			}
		}
	}
}

// TestReplacedGoes checks that a replaced version is always deleted, and only in the phase
// Deleting.
func TestReplacedGoes(t *testing.T) {
	for _, reason := range allReasons() {
		o := good(succeeded, reason, successor(succeeded))
		var path []operatorsv1alpha1.ClusterServiceVersionPhase
		for range 3 {
			next := Next(o)
			follow(&o, next)
			path = append(path, next.Phase)
		}
		if diff := cmp.Diff([]operatorsv1alpha1.ClusterServiceVersionPhase{replacing, deleting, deleting}, path); diff != "" {
			t.Errorf("path from Succeeded: -want, +got:\n%s", diff)
		}
	}
}

// TestTransitionsAreSound checks that each transition is complete, requires work only in the phase
// of that work, and is stable: an unchanged state is not written again.
func TestTransitionsAreSound(t *testing.T) {
	workplace := map[Action][]operatorsv1alpha1.ClusterServiceVersionPhase{
		PrepareWebhooks: {ready}, Install: {ready}, Switch: {installs, succeeded}, CopyRBAC: {succeeded}, DeleteSelf: {deleting}, RenewCertificates: {pending, replacing},
		Annotate: {pending, ready, installs, succeeded, broken}, RemoveDeployments: {none, unknown, pending, ready, installs, succeeded, broken},
	}
	for _, phase := range allPhases() {
		for _, reason := range allReasons() {
			for i, one := range troubles() {
				for _, two := range troubles()[i:] {
					o := good(phase, reason, one, two)
					next := Next(o)
					if next.Phase == none || next.Message == "" || next.After < 0 {
						t.Fatalf("incomplete transition %+v from %s (%s)", next, phase, reason)
					}
					for _, a := range next.Actions {
						if !slices.Contains(workplace[a], phase) {
							t.Fatalf("action %s in phase %s", a, phase)
						}
					}
				}
			}
		}
	}
}
