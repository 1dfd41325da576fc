package phase

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/providedapis"
	"github.com/chandlery/chandlery/supervisor/operatorproxy"
)

const (
	none      operatorsv1alpha1.ClusterServiceVersionPhase = operatorsv1alpha1.CSVPhaseNone
	pending                                                = operatorsv1alpha1.CSVPhasePending
	ready                                                  = operatorsv1alpha1.CSVPhaseInstallReady
	installs                                               = operatorsv1alpha1.CSVPhaseInstalling
	succeeded                                              = operatorsv1alpha1.CSVPhaseSucceeded
	broken                                                 = operatorsv1alpha1.CSVPhaseFailed
	replacing                                              = operatorsv1alpha1.CSVPhaseReplacing
	deleting                                               = operatorsv1alpha1.CSVPhaseDeleting
	unknown                                                = operatorsv1alpha1.CSVPhaseUnknown
)

const (
	takenDetail = "Cup.v1.tea.example.com provided in a common namespace by " +
		"OperatorGroup bar/all already; let the two groups target different namespaces, or remove one of the operators"
	staticDetail = "Cup.v1.tea.example.com not in the annotation " +
		"olm.providedAPIs of an OperatorGroup with spec.staticProvidedAPIs; add it there, or set staticProvidedAPIs to false"
)

// detail returns the cause of a transition whose message lacks a detail.
func detail(reason, text string) *api.Cause { return &api.Cause{Reason: reason, Detail: text} }

func kept(phase operatorsv1alpha1.ClusterServiceVersionPhase, reason operatorsv1alpha1.ConditionReason, actions ...Action) Transition {
	return Transition{Phase: phase, Reason: reason, Message: "as before", Actions: actions}
}

func TestNext(t *testing.T) {
	unhealthyMessage := "waiting for deployment kettle to become ready: deployment \"kettle\" not available: none up"
	unavailable := &api.Cause{Reason: "DeploymentNotAvailable"}
	cases := map[string]struct {
		reason string
		o      Input
		want   Transition
	}{
		"FirstSight": {
			"a new object that its group has nothing against becomes Pending (K12)", good(none, ""),
			Transition{Phase: pending, Reason: "RequirementsUnknown", Message: "requirements not yet checked"},
		},
		"FirstSightUnannotated": {
			"nothing is annotated before the first phase", good(none, "", bareCSV),
			Transition{Phase: pending, Reason: "RequirementsUnknown", Message: "requirements not yet checked"},
		},
		"FirstSightFreshGroup": {
			"K7: what cannot be judged yet becomes Pending", good(none, "", freshGroup, targeting()),
			Transition{Phase: pending, Reason: "RequirementsUnknown", Message: "requirements not yet checked"},
		},
		"FirstSightUnclaimed": {
			"a group that has yet to claim the APIs is no reason to fail", good(none, "", claim(providedapis.Add)),
			Transition{Phase: pending, Reason: "RequirementsUnknown", Message: "requirements not yet checked"},
		},
		"FirstSightWithoutGroup": {
			"K9: the group is judged before the first phase", good(none, "", noGroup),
			Transition{
				Phase: broken, Reason: "NoOperatorGroup",
				Message: "csv in namespace with no operatorgroups", Cause: detail("NoOperatorGroup", "create an OperatorGroup in namespace kitchen, "+
					"which selects the namespaces that its operators serve"),
			},
		},
		"FirstSightTwoGroups": {
			"K9: several groups", good(unknown, "", twoGroups),
			Transition{
				Phase: broken, Reason: "TooManyOperatorGroups",
				Message: "csv created in namespace with multiple operatorgroups, can't pick one automatically", Cause: detail("TooManyOperatorGroups", "delete all but one of the OperatorGroups other, own of namespace kitchen"),
			},
		},
		"FirstSightUnsupportedGroup": {
			"K8: a group that the version cannot serve", good(none, "", bareCSV, targeting("")),
			Transition{
				Phase: broken, Reason: "UnsupportedOperatorGroup",
				Message: "AllNamespaces InstallModeType not supported, cannot configure to watch all namespaces", Cause: detail("UnsupportedOperatorGroup", "change spec.targetNamespaces of "+
					"OperatorGroup own in namespace kitchen (without it all namespaces are selected): this version supports OwnNamespace"),
			},
		},
		"FirstSightTaken": {
			"K1: APIs that another group has", good(none, "", claim(providedapis.Conflict)),
			Transition{Phase: broken, Reason: "InterOperatorGroupOwnerConflict", Message: "intersecting operatorgroups provide the same apis", Cause: detail("InterOperatorGroupOwnerConflict", takenDetail)},
		},
		"FirstSightStatic": {
			"K4: APIs that are not in a fixed list", good(none, "", claim(providedapis.Static)),
			Transition{Phase: broken, Reason: "CannotModifyStaticOperatorGroupProvidedAPIs", Message: "static provided api operatorgroup cannot be modified by these apis", Cause: detail("CannotModifyStaticOperatorGroupProvidedAPIs", staticDetail)},
		},
		"Unknown": {
			"an unknown phase starts over", good(unknown, ""),
			Transition{Phase: pending, Reason: "RequirementsUnknown", Message: "requirements not yet checked"},
		},
		"ForeignPhase": {
			"a phase nobody has heard of starts over", good("Dancing", ""),
			Transition{Phase: pending, Reason: "RequirementsUnknown", Message: "requirements not yet checked"},
		},
		"NoGroup": {
			"no operator group", good(pending, "RequirementsUnknown", noGroup),
			Transition{
				Phase: broken, Reason: "NoOperatorGroup",
				Message: "csv in namespace with no operatorgroups", Cause: detail("NoOperatorGroup", "create an OperatorGroup in namespace kitchen, "+
					"which selects the namespaces that its operators serve"),
			},
		},
		"TwoGroups": {
			"several operator groups", good(succeeded, "InstallSucceeded", twoGroups),
			Transition{
				Phase: broken, Reason: "TooManyOperatorGroups",
				Message: "csv created in namespace with multiple operatorgroups, can't pick one automatically", Cause: detail("TooManyOperatorGroups", "delete all but one of the OperatorGroups other, own of namespace kitchen"),
			},
		},
		"FreshGroup": {
			"a group without status has said nothing yet", good(pending, "RequirementsUnknown", freshGroup),
			kept(pending, "RequirementsUnknown"),
		},
		"NotAnnotated": {
			"annotations are written before anything is judged by them", good(pending, "RequirementsUnknown", bareCSV),
			kept(pending, "RequirementsUnknown", Annotate),
		},
		"FailedNotAnnotated": {
			"the cause is written with the annotations", good(broken, "UnsupportedOperatorGroup", targeting(""), bareCSV),
			Transition{
				Phase: broken, Reason: "UnsupportedOperatorGroup", Message: "as before", Actions: []Action{Annotate},
				Cause: detail("UnsupportedOperatorGroup", "change spec.targetNamespaces of "+
					"OperatorGroup own in namespace kitchen (without it all namespaces are selected): this version supports OwnNamespace"),
			},
		},
		"SoonFailedNotAnnotated": {
			"a cause is not written with the phase before it", good(pending, "RequirementsUnknown", targeting(""), bareCSV),
			kept(pending, "RequirementsUnknown", Annotate),
		},
		"InvalidModes": {
			"install modes listed twice", good(pending, "RequirementsUnknown", doubleModes),
			Transition{
				Phase: broken, Reason: "InvalidInstallModes",
				Message: "InstallMode list contains duplicates, cannot make set: [{OwnNamespace true} {OwnNamespace true}]",
			},
		},
		"UnsupportedGroup": {
			"group wants what the operator does not support", good(installs, "InstallWaiting", targeting("")),
			Transition{
				Phase: broken, Reason: "UnsupportedOperatorGroup",
				Message: "AllNamespaces InstallModeType not supported, cannot configure to watch all namespaces", Cause: detail("UnsupportedOperatorGroup", "change spec.targetNamespaces of "+
					"OperatorGroup own in namespace kitchen (without it all namespaces are selected): this version supports OwnNamespace"),
			},
		},
		"UnsupportedSelector": {
			"a group that selects by labels", good(pending, "RequirementsUnknown", targeting("bar"), selecting),
			Transition{
				Phase: broken, Reason: "UnsupportedOperatorGroup",
				Message: "SingleNamespace InstallModeType not supported, cannot configure to watch one namespace", Cause: detail("UnsupportedOperatorGroup", "change spec.selector of "+
					"OperatorGroup own in namespace kitchen: this version supports OwnNamespace"),
			},
		},
		"NoModes": {
			"no group can be right", good(pending, "RequirementsUnknown", noModes),
			Transition{
				Phase: broken, Reason: "UnsupportedOperatorGroup",
				Message: "OwnNamespace InstallModeType not supported, cannot configure to watch own namespace", Cause: detail("UnsupportedOperatorGroup", "no entry of spec.installModes is supported; ask the author of the bundle to correct it"),
			},
		},
		"NoTargets": {
			"a group whose selector selects nothing", good(pending, "RequirementsUnknown", targeting(), selecting),
			Transition{
				Phase: broken, Reason: "NoTargetNamespaces",
				Message: "no targetNamespaces are matched operatorgroups namespace selection", Cause: detail("NoTargetNamespaces", "correct spec.selector of OperatorGroup own in namespace kitchen: it selects no existing namespace"),
			},
		},
		"Webhooks": {
			"webhooks are refused by field name", good(pending, "RequirementsUnknown", unservable),
			Transition{
				Phase: broken, Reason: "InstallComponentFailedNoRetry",
				Message: "install strategy failed: this version does not support webhooks",
			},
		},
		"UnknownStrategy": {
			"a strategy other than deployment", good(pending, "RequirementsUnknown", helm),
			Transition{
				Phase: broken, Reason: "InvalidInstallStrategy",
				Message: "install strategy invalid: unrecognized install strategy", Cause: detail("InvalidInstallStrategy", `spec.install.strategy is "helm"; set it to "deployment", the only supported value`),
			},
		},
		"NoDeployments": {
			"nothing to run", good(pending, "RequirementsUnknown", noDeployments),
			Transition{
				Phase: broken, Reason: "InvalidInstallStrategy",
				Message: "install strategy invalid: spec.install.spec.deployments is empty; add at least one Deployment",
			},
		},
		"PendingRequirementsNotMet": {
			"waits, with a slow second look", good(pending, "RequirementsUnknown", lacking),
			Transition{
				Phase: pending, Reason: "RequirementsNotMet", Message: "one or more requirements couldn't be found",
				After: requirementsDelay,
			},
		},
		"PendingOwnerConflict": {
			"another operator owns the CRD", good(pending, "RequirementsUnknown", conflict),
			Transition{
				Phase: broken, Reason: "OwnerConflict",
				Message: "conflicting CRD owner in namespace", Cause: detail("OwnerConflict", "cups.example.com is owned by csv pot.v1"),
			},
		},
		"PendingPredecessorSucceeded": {
			"it is about to hand over", good(pending, "RequirementsUnknown", predecessor(succeeded)),
			kept(pending, "RequirementsUnknown"),
		},
		"PendingPredecessorFailed": {
			"it will not hand over, which is said", good(pending, "RequirementsUnknown", predecessor(broken)),
			Transition{
				Phase: pending, Reason: "AllRequirementsMet",
				Message: "all requirements found, waiting for the previous version, csv kettle.v0 (Failed), to succeed or to be deleted; " +
					"to replace it as it is, set spec.upgradeStrategy: TechPreviewUnsafeFailForward on OperatorGroup own",
				Cause: &api.Cause{
					Reason: "WaitingForPredecessor",
					Remedy: "to replace it as it is, set spec.upgradeStrategy: TechPreviewUnsafeFailForward on OperatorGroup own",
				},
			},
		},
		"PendingPredecessorReplacing": {
			"it has handed over", good(pending, "RequirementsUnknown", predecessor(replacing)),
			Transition{Phase: ready, Reason: "AllRequirementsMet", Message: "all requirements found, attempting install"},
		},
		"PendingMet": {
			"nothing is missing", good(pending, "RequirementsNotMet"),
			Transition{Phase: ready, Reason: "AllRequirementsMet", Message: "all requirements found, attempting install"},
		},
		"InstallReady": {
			"installs in this phase, then names the next", good(ready, "AllRequirementsMet", changed),
			Transition{
				Phase: installs, Reason: "InstallSucceeded", Message: "waiting for install components to report healthy",
				Actions: []Action{Install},
			},
		},
		"InstallReadyForeign": {
			"nothing foreign is taken", good(ready, "AllRequirementsMet", ownedByOther),
			Transition{
				Phase: broken, Reason: "InstallComponentFailed", After: reinstallDelay,
				Message: `install strategy failed: deployment "kettle" exists`,
			},
		},
		"InstallReadyForeignRole": {
			"neither in the cluster", good(ready, "AllRequirementsMet", copyTaken),
			Transition{
				Phase: broken, Reason: "InstallComponentFailed", After: reinstallDelay,
				Message: `install strategy failed: ClusterRole "x" exists`,
			},
		},
		"InstallReadyAgain": {
			"a repetition rests first", good(ready, "InstallWaiting", later(-time.Minute+500*time.Millisecond)),
			Transition{Phase: ready, Reason: "InstallWaiting", Message: "as before", After: 1500 * time.Millisecond},
		},
		"InstallingHealthy": {
			"all is up", good(installs, "InstallSucceeded"),
			Transition{Phase: succeeded, Reason: "InstallSucceeded", Message: "install strategy completed with no errors"},
		},
		"InstallingWaiting": {
			"looks again when time is up", good(installs, "InstallSucceeded", waiting),
			Transition{
				Phase: installs, Reason: "InstallWaiting", Message: "installing: " + unhealthyMessage,
				After: installTimeout - time.Minute,
			},
		},
		"InstallingChanged": {
			"a missing or changed Deployment is applied again", good(installs, "InstallWaiting", changed),
			Transition{Phase: ready, Reason: "InstallWaiting", Message: "installing: missing deployment with name=kettle"},
		},
		"InstallingGaveUp": {
			"progress deadline exceeded", good(installs, "InstallWaiting", gaveUp),
			Transition{Phase: broken, Reason: "InstallCheckFailed", Message: "install failed: deployment kettle not ready before timeout: x", Cause: unavailable},
		},
		"InstallingTimeout": {
			"five minutes are over, and what was waited for is said", good(installs, "InstallWaiting", waiting, later(4*time.Minute)),
			Transition{Phase: broken, Reason: "InstallCheckFailed", Message: "install timeout", Cause: &api.Cause{Reason: "DeploymentNotAvailable", Detail: unhealthyMessage}},
		},
		"InstallingTimeoutServing": {
			"nor did what it serves answer", good(installs, "InstallWaiting", notServing, later(4*time.Minute)),
			Transition{Phase: broken, Reason: "InstallCheckFailed", Message: "install timeout", Cause: detail("InstallCheckFailed", "apiServices not installed")},
		},
		"SucceededQuiet": {
			"nothing to do", good(succeeded, "InstallSucceeded"),
			Transition{Phase: succeeded, Reason: "InstallSucceeded", Message: "install strategy completed with no errors"},
		},
		"SucceededReplaced": {
			"a successor has appeared", good(succeeded, "InstallSucceeded", successor(pending), lacking),
			Transition{Phase: replacing, Reason: "BeingReplaced", Message: "being replaced by csv: kettle.v2"},
		},
		"SucceededRequirementsLost": {
			"something it needs is gone", good(succeeded, "InstallSucceeded", lacking),
			Transition{Phase: broken, Reason: "RequirementsNotMet", Message: "requirements no longer met"},
		},
		"SucceededUnhealthy": {
			"a Deployment is not available", good(succeeded, "InstallSucceeded", waiting),
			Transition{Phase: broken, Reason: "ComponentUnhealthy", Message: "installing: " + unhealthyMessage, Cause: unavailable},
		},
		"SucceededDeploymentChanged": {
			"the declared one is applied at once",
			good(succeeded, "InstallSucceeded", func(o *Input) {
				o.Components.Stale, o.Components.Changed = "deployment changed old hash=a, new hash=b", true
			}),
			Transition{Phase: ready, Reason: "ComponentUnhealthy", Message: "installing: deployment changed old hash=a, new hash=b"},
		},
		"SucceededCopiesStale": {
			"roles are repaired in place", good(succeeded, "InstallSucceeded", copyMissing),
			kept(succeeded, "InstallSucceeded", CopyRBAC),
		},
		"FailedGroupFits": {
			"the operator group was the reason and fits now", good(broken, "UnsupportedOperatorGroup"),
			Transition{Phase: pending, Reason: "RequirementsUnknown", Message: "InstallModes now support target namespaces"},
		},
		"FailedSpecRight": {
			"the spec was the reason and is right now", good(broken, "InstallComponentFailedNoRetry"),
			Transition{Phase: pending, Reason: "RequirementsUnknown", Message: "requirements not yet checked"},
		},
		"FailedForAccount": {
			"the account of the group was the reason", good(broken, "InstallComponentFailedNoRetry", changed, refusedAccount, later(-30*time.Second)),
			Transition{Phase: broken, Reason: "InstallComponentFailedNoRetry", Message: "as before", Cause: lastCause, After: 30 * time.Second},
		},
		"FailedForAccountRegranted": {
			"the account of the group was the reason and has other permissions now", good(broken, "InstallComponentFailedNoRetry", changed, refusedAccount, regranted, later(-30*time.Second)),
			Transition{Phase: pending, Reason: "DetectedClusterChange", Message: "Cluster resources changed state"},
		},
		"FailedForAccountDue": {
			"the account of the group was the reason a minute ago", good(broken, "InstallComponentFailedNoRetry", changed, refusedAccount),
			Transition{Phase: pending, Reason: "NeedsReinstall", Message: "installing: missing deployment with name=kettle"},
		},
		"FailedRequirements": {
			"requirements are missing", good(broken, "RequirementsNotMet", lacking),
			Transition{Phase: pending, Reason: "RequirementsNotMet", Message: "requirements not met"},
		},
		"FailedConflictLasts": {
			"the other owner is still there", good(broken, "OwnerConflict", conflict),
			Transition{
				Phase: broken, Reason: "OwnerConflict",
				Message: "conflicting CRD owner in namespace", Cause: detail("OwnerConflict", "cups.example.com is owned by csv pot.v1"),
			},
		},
		"FailedHealthy": {
			"it got well by itself", good(broken, "ComponentUnhealthy"),
			Transition{Phase: succeeded, Reason: "InstallSucceeded", Message: "install strategy completed with no errors"},
		},
		"FailedChanged": {
			"installing again changes something, so at once", good(broken, "ComponentUnhealthy", changed),
			Transition{Phase: pending, Reason: "NeedsReinstall", Message: "installing: missing deployment with name=kettle"},
		},
		"FailedWaiting": {
			"installing again changes nothing, so not at once", good(broken, "ComponentUnhealthy", waiting),
			Transition{Phase: broken, Reason: "ComponentUnhealthy", Message: "as before", After: installTimeout - time.Minute},
		},
		"FailedCausedWaiting": {
			"the cause stays as long as the failure", good(broken, "ComponentUnhealthy", waiting, causing(*unavailable)),
			Transition{Phase: broken, Reason: "ComponentUnhealthy", Message: "as before", Cause: unavailable, After: installTimeout - time.Minute},
		},
		"FailedCausedHealthy": {
			"what runs has no cause", good(broken, "ComponentUnhealthy", causing(*unavailable)),
			Transition{Phase: succeeded, Reason: "InstallSucceeded", Message: "install strategy completed with no errors"},
		},
		"FailedWaitingLong": {
			"but in the end", good(broken, "InstallCheckFailed", waiting, later(5*time.Minute)),
			Transition{Phase: pending, Reason: "NeedsReinstall", Message: "installing: " + unhealthyMessage},
		},
		"FailedRefused": {
			"what the API refused is tried after a pause", good(broken, "InstallComponentFailed", changed, later(-30*time.Second)),
			Transition{Phase: broken, Reason: "InstallComponentFailed", Message: "as before", After: 30 * time.Second},
		},
		"FailedCorrected": {
			"what has changed since it was refused is tried at once", good(broken, "InstallComponentFailed", changed, corrected, later(-30*time.Second)),
			Transition{Phase: pending, Reason: "NeedsReinstall", Message: "installing: missing deployment with name=kettle"},
		},
		"FailedRegranted": {
			"R1 to R4: what was refused with other rights is tried at once", good(broken, "InstallComponentFailed", changed, regranted, later(-30*time.Second)),
			Transition{Phase: pending, Reason: "DetectedClusterChange", Message: "Cluster resources changed state"},
		},
		"FailedJustGranted": {
			"the API server may not have known of the rights yet", good(broken, "InstallComponentFailed", changed, justGranted, later(-59*time.Second)),
			Transition{Phase: broken, Reason: "InstallComponentFailed", Message: "as before", After: time.Second},
		},
		"FailedOtherwiseRegranted": {
			"R9: rights have nothing to do with another failure", good(broken, "ComponentUnhealthy", waiting, regranted),
			Transition{Phase: broken, Reason: "ComponentUnhealthy", Message: "as before", After: installTimeout - time.Minute},
		},
		"ReplacingWaits": {"the new one is not up yet", good(replacing, "BeingReplaced", successor(installs)), kept(replacing, "BeingReplaced")},
		"ReplacingLeafFirst": {
			"an older one goes first", good(replacing, "BeingReplaced", successor(succeeded), predecessor(replacing)),
			kept(replacing, "BeingReplaced"),
		},
		"ReplacingDone": {
			"the new one is up", good(replacing, "BeingReplaced", successor(succeeded), noGroup),
			Transition{
				Phase: deleting, Reason: "Replaced",
				Message: "has been replaced by a newer ClusterServiceVersion that has successfully installed.",
			},
		},
		"ReplacingAlone": {
			"the new one is gone", good(replacing, "BeingReplaced"),
			Transition{Phase: pending, Reason: "NeedsReinstall", Message: "the replacement was deleted, installing this version again"},
		},
		"Deleting": {"goes", good(deleting, "Replaced", successor(succeeded)), kept(deleting, "Replaced", DeleteSelf)},
		"DeletingAlone": {
			"the new one went at the last moment", good(deleting, "Replaced"),
			Transition{Phase: pending, Reason: "NeedsReinstall", Message: "the replacement was deleted, installing this version again"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Next(tc.o)); diff != "" {
				t.Errorf("%s\nNext(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAfterRefusal(t *testing.T) {
	retried := &api.Cause{Reason: "Retrying"}
	cases := map[string]struct {
		reason string
		phase  operatorsv1alpha1.ClusterServiceVersionPhase
		want   Transition
	}{
		"Installs": {
			"what cannot be installed has failed", installs,
			Transition{Phase: broken, Reason: "InstallComponentFailed", Message: "install strategy failed: boom", Cause: retried, After: reinstallDelay},
		},
		"Runs": {
			"what runs goes on", succeeded,
			Transition{
				Phase: succeeded, Reason: "InstallSucceeded", After: reinstallDelay,
				Message: "install strategy completed with no errors", Cause: &api.Cause{Reason: "Retrying", Detail: "the API server refuses a later change: boom"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, AfterRefusal(good(tc.phase, ""), errors.New("boom"))); diff != "" {
				t.Errorf("%s\nAfterRefusal(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCauseOfRefusal checks that the reason and the remedy of a refusal are in the cause, and that the
// message has the words of the API server alone.
func TestCauseOfRefusal(t *testing.T) {
	roles := schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}
	forbidden := func(why string) error {
		return fmt.Errorf("applying ClusterRole r: %w", apierrors.NewForbidden(roles, "r", errors.New(why)))
	}
	terminating := apierrors.NewForbidden(roles, "r", errors.New("it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	cases := map[string]struct {
		err  error
		want api.Cause
	}{
		"NoRight": {forbidden("no"), api.Cause{Reason: "Retrying", Remedy: "grant the supervisor this permission"}},
		"Account": {
			&AccountError{Account: "weak", Group: "g", Err: forbidden(`User "system:serviceaccount:foo:weak" cannot create resource "deployments"`)},
			api.Cause{
				Reason: "PermissionDenied", Detail: "ServiceAccount weak of OperatorGroup g lacks a permission",
				Remedy: "grant the ServiceAccount this permission, or name another ServiceAccount in the OperatorGroup",
			},
		},
		"Quota":     {forbidden("exceeded quota: few"), api.Cause{Reason: "QuotaExceeded", Remedy: "raise the quota, or delete objects that count against it"}},
		"Policy":    {forbidden(`admission webhook "strict.example" denied the request: no`), api.Cause{Reason: "AdmissionDenied", Remedy: "change the policy that refuses it, or ask for an exception"}},
		"Namespace": {terminating, api.Cause{Reason: "NamespaceTerminating"}},
		"Invalid":   {apierrors.NewBadRequest("spec.replicas"), api.Cause{Reason: "Retrying"}},
		"Proxies":   {fmt.Errorf("installing: %w", &operatorproxy.UnknownError{Err: errors.New("unread")}), api.Cause{Reason: "ProxiesUnknown"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := AfterRefusal(good(installs, ""), tc.err)
			if diff := cmp.Diff(&tc.want, got.Cause); diff != "" {
				t.Errorf("the cause of %v: -want, +got:\n%s", tc.err, diff)
			}
			want := Transition{Reason: "InstallComponentFailed", Message: "install strategy failed: " + tc.err.Error()}
			if account, is := errors.AsType[*AccountError](tc.err); is {
				want.Reason, want.Message = "InstallComponentFailedNoRetry", "install strategy failed: install strategy failed: "+errors.Unwrap(account.Err).Error()
			}
			if got.Reason != want.Reason || got.Message != want.Message {
				t.Errorf("%s: %q, want %s: %q", got.Reason, got.Message, want.Reason, want.Message)
			}
		})
	}
}
