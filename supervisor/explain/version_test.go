package explain_test

import (
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apiserver/refusal"
	"github.com/chandlery/chandlery/supervisor/explain"
)

func TestExplainVersion(t *testing.T) {
	t.Parallel()
	const (
		failed  = operatorsv1alpha1.CSVPhaseFailed
		pending = operatorsv1alpha1.CSVPhasePending
		object  = "ClusterServiceVersion shop/lamp.v1"
	)
	lacks := func(kind, name, message string) func(*clusterState) {
		return all(versionIs(pending, operatorsv1alpha1.CSVReasonRequirementsNotMet, "one or more requirements couldn't be found"), func(o *clusterState) {
			o.csv().Status.RequirementStatus = []operatorsv1alpha1.RequirementStatus{
				{Kind: "ServiceAccount", Name: "good", Status: operatorsv1alpha1.RequirementStatusReasonPresent},
				{Kind: kind, Name: name, Status: operatorsv1alpha1.RequirementStatusReasonNotPresent, Message: message},
			}
		})
	}
	unreadable := all(versionIs(failed, "", ""), hides("clusterserviceversions.operators.coreos.com", "shop"), func(o *clusterState) { o.Versions, o.Deployments, o.Pods = nil, nil, nil })
	waiting := api.Cause{Reason: api.ReasonWaitingForPredecessor}
	update := func(reason operatorsv1alpha1.ConditionReason, message string, causes ...api.Cause) func(*clusterState) {
		return func(o *clusterState) {
			next := *o.csv().DeepCopy()
			next.Name, next.Spec.Replaces = "lamp.v2", "lamp.v1"
			next.Status.Phase, next.Status.Reason, next.Status.Message = pending, reason, message
			for _, cause := range causes {
				api.SetCause(&next, &cause)
			}
			o.Versions = append(o.Versions, next)
			o.sub().Status.State, o.sub().Status.CurrentCSV = operatorsv1alpha1.SubscriptionStateUpgradePending, "lamp.v2"
		}
	}
	check(t, []explained{
		{
			reason: "install modes", state: explain.Broken, code: explain.CodeInstallModeUnsupported, object: "OperatorGroup shop/group",
			change: versionIs(failed, operatorsv1alpha1.CSVReasonUnsupportedOperatorGroup,
				"AllNamespaces InstallModeType not supported, cannot configure to watch all namespaces: change spec.targetNamespaces of OperatorGroup group in namespace shop: this version supports OwnNamespace"),
			summary: []string{object, "AllNamespaces InstallModeType not supported"},
		},
		{
			reason: "Kubernetes too old", state: explain.Broken, code: explain.CodeKubernetesTooOld, object: object,
			change:  lacks("ClusterServiceVersion", "lamp.v1", "CSV version requirement not met: minKubeVersion (9.0.0) > server version (1.36.0)"),
			summary: []string{"spec.minKubeVersion is not met", "9.0.0"},
		},
		{
			reason: "a definition is missing", state: explain.Broken, code: explain.CodeDefinitionMissing, object: "CustomResourceDefinition wicks.example.com",
			change: lacks("CustomResourceDefinition", "wicks.example.com", "CRD is not present"), summary: []string{object + " needs CustomResourceDefinition wicks.example.com: CRD is not present"},
		},
		{
			reason: "a definition has a name that none can have", state: explain.Broken, code: explain.CodeDefinitionMissing, object: "CustomResourceDefinition wicks",
			change: lacks("CustomResourceDefinition", "wicks", "CRD is not present"), remedy: "Write its name in spec.customresourcedefinitions as plural.group",
		},
		{
			reason: "rights are missing", state: explain.Broken, code: explain.CodePermissionsMissing, object: "ServiceAccount shop/lamp",
			change: all(lacks("ServiceAccount", "lamp", "Policy rule not satisfied for service account"), func(o *clusterState) {
				o.csv().Status.RequirementStatus[1].Dependents = []operatorsv1alpha1.DependentStatus{
					{Status: operatorsv1alpha1.DependentStatusReasonSatisfied, Message: "namespaced rule:{}"}, {Status: "NotSatisfied", Message: `cluster rule:{"verbs":["get"]}`},
				}
			}),
			summary: []string{`ServiceAccount lamp: Policy rule not satisfied for service account: cluster rule:{"verbs":["get"]}`},
		},
		{
			reason: "what another operator was to bring is missing because of that one", state: explain.Broken, code: explain.CodeDeploymentNotAvailable,
			change: all(lacks("APIService", "v1.wick.example.com", "APIService is not available"), func(o *clusterState) {
				wick := operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: meta("shop", "wick.v1")}
				wick.Spec.APIServiceDefinitions.Owned = []operatorsv1alpha1.APIServiceDescription{{Group: "wick.example.com", Version: "v1"}}
				wick.Status.Phase, wick.Status.Message = failed, "install failed: deployment wick not ready before timeout"
				api.SetCause(&wick, &api.Cause{Reason: api.ReasonDeploymentNotAvailable})
				o.Versions = append(o.Versions, wick)
			}),
			object: "ClusterServiceVersion shop/wick.v1", summary: []string{"deployment wick not ready"},
		},
		{
			reason: "owner conflict", state: explain.Broken, code: explain.CodeOwnerConflict, object: object,
			change: versionIs(failed, operatorsv1alpha1.CSVReasonOwnerConflict, "conflicting CRD owner in namespace", api.Cause{
				Reason: "OwnerConflict", Detail: "spec.customresourcedefinitions.owned names lamps.example.com, which csv torch.v1 owns already; remove one of the two operators",
			}),
			summary: []string{"csv torch.v1 owns already"},
		},
		{
			reason: "conflict of two groups", state: explain.Broken, code: explain.CodeOperatorGroupConflict, object: object,
			change: versionIs(failed, operatorsv1alpha1.CSVReasonInterOperatorGroupOwnerConflict, "intersecting operatorgroups provide the same APIs", api.Cause{
				Reason: "InterOperatorGroupOwnerConflict", Detail: "OperatorGroup other/group provides lamps.example.com too",
			}),
			summary: []string{"other/group provides lamps.example.com too"},
		},
		{
			reason: "fixed APIs of the group", state: explain.Broken, code: explain.CodeProvidedAPIsStatic, object: object,
			change: versionIs(failed, operatorsv1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs, "static provided APIs", api.Cause{
				Reason: "CannotModifyStaticOperatorGroupProvidedAPIs", Detail: "Lamp.v1.example.com is not listed",
			}),
			summary: []string{"Lamp.v1.example.com is not listed"},
		},
		{
			reason: "the operator does not let itself be upgraded", state: explain.Held, code: explain.CodeOperatorNotUpgradeable, object: "OperatorCondition shop/lamp.v1",
			change: all(update(operatorsv1alpha1.CSVReasonOperatorConditionNotUpgradeable, "operator is not upgradeable"), func(o *clusterState) {
				o.OperatorConditions = []operatorsv2.OperatorCondition{condition("lamp.v1", no, "a migration runs")}
			}),
			summary: []string{"OperatorCondition shop/lamp.v1 blocks the upgrade of lamp.v1 to lamp.v2", "a migration runs"},
		},
		{
			reason: "what keeps the predecessor keeps the update", state: explain.Broken, code: explain.CodeImagePullFailed, object: "Pod shop/lamp-1",
			change: all(waits("ErrImagePull", "not found"), update(operatorsv1alpha1.CSVReasonRequirementsMet, "all requirements found, waiting for the previous version, csv lamp.v1 (Failed), to succeed or to be deleted", waiting),
				func(o *clusterState) {
					o.csv().Status.Phase, o.csv().Status.Reason = failed, operatorsv1alpha1.CSVReasonInstallCheckFailed
				}),
			summary: []string{"image registry.example.com/lamp:1 of container main cannot be pulled: not found"},
		},
		{
			reason: "a predecessor that nothing is seen to keep", state: explain.Broken, code: explain.CodePredecessorNotReady,
			change:  update(operatorsv1alpha1.CSVReasonRequirementsMet, "all requirements found, waiting for the previous version, csv lamp.v1 (Succeeded), to succeed or to be deleted", waiting),
			summary: []string{"waiting for the previous version, csv lamp.v1"},
		},
		{
			reason: "it is gone though its plan is done", state: explain.Broken, code: explain.CodeVersionDeleted, object: object,
			change: func(o *clusterState) {
				o.sub().Status.State, o.sub().Status.InstalledCSV = operatorsv1alpha1.SubscriptionStateUpgradePending, ""
				o.Versions = nil
			},
			summary: []string{object + " was deleted after InstallPlan shop/install-a created it"},
		},
		{
			reason: "a quota for Deployments", state: explain.Broken, code: explain.CodeQuotaExceeded, object: object,
			change: versionIs(failed, operatorsv1alpha1.CSVReasonComponentFailed, "install strategy failed: deployments.apps is forbidden: exceeded quota: small",
				api.Cause{Reason: string(refusal.QuotaExceeded), Remedy: "raise the quota, or delete objects that count against it"}),
			summary: []string{"exceeded quota: small"}, remedy: "Raise the quota, or delete objects that count against it.",
		},
		{
			reason: "a refusal in a status without a cause", state: explain.Broken, code: explain.CodeAdmissionRefused, object: object,
			change:  versionIs(failed, operatorsv1alpha1.CSVReasonComponentFailed, `install strategy failed: admission webhook "no.example.com" denied the request: no`),
			summary: []string{"no.example.com"}, remedy: "Change the policy",
		},
		{
			reason: "the reason counts, and not what the message quotes", state: explain.Broken, code: explain.CodeVersionFailing, object: object,
			change: versionIs(failed, operatorsv1alpha1.CSVReasonComponentFailed, "install strategy failed: it says that exceeded quota: small",
				api.Cause{Reason: api.ReasonRetrying}),
			summary: []string{"install strategy failed"},
		},
		{
			reason: "a Deployment that nothing is seen to keep", state: explain.Broken, code: explain.CodeDeploymentNotAvailable, object: object,
			change: versionIs(failed, operatorsv1alpha1.CSVReasonComponentUnhealthy, "installing: waiting for it",
				api.Cause{Reason: api.ReasonDeploymentNotAvailable}),
			summary: []string{"installing: waiting for it"},
		},
		{
			reason: "a spec that cannot be", state: explain.Broken, code: explain.CodeVersionInvalid,
			change: versionIs(failed, operatorsv1alpha1.CSVReasonInvalidStrategy, "install strategy invalid: spec.install.strategy is \"helm\"; set it to \"deployment\""), summary: []string{"install strategy invalid"},
		},
		{
			reason: "a Deployment that the account of the group may not write", state: explain.Broken, code: explain.CodePermissionDenied,
			change: versionIs(failed, operatorsv1alpha1.CSVReasonComponentFailedNoRetry, "install strategy failed: install strategy failed: no",
				api.Cause{Reason: "PermissionDenied", Detail: "ServiceAccount weak of OperatorGroup own lacks a permission", Remedy: "grant it"}),
			summary: []string{"install strategy failed: no: ServiceAccount weak of OperatorGroup own lacks a permission"},
		},
		{
			reason: "serving resources", state: explain.Broken, code: explain.CodeWebhookResourcesBroken,
			change: versionIs(failed, operatorsv1alpha1.CSVReasonAPIServiceResourceIssue, "Secret lamp-cert is gone"), summary: []string{"Secret lamp-cert is gone"},
		},
		{
			reason: "something is tried again and again", state: explain.Broken, code: explain.CodeWebhookUnavailable, remedy: "Restore the server of webhook slow.example.com",
			change: versionIs(pending, operatorsv1alpha1.CSVReasonNeedsReinstall, "requirements not yet checked",
				api.Cause{Reason: string(refusal.WebhookUnavailable), Detail: `failed calling webhook "slow.example.com": timeout`, PhaseMessage: "requirements not yet checked"}), summary: []string{"slow.example.com"},
		},
		{
			reason: "another error is tried again and again", state: explain.Broken, code: explain.CodeVersionFailing, object: object,
			change: versionIs(pending, operatorsv1alpha1.CSVReasonNeedsReinstall, "requirements not yet checked",
				api.Cause{Reason: api.ReasonRetrying, Detail: "etcdserver: request timed out", PhaseMessage: "requirements not yet checked"}), summary: []string{"request timed out"},
		},
		{
			reason: "custom resources that finalizers hold", state: explain.Broken, code: explain.CodeCleanupBlocked, object: "Lamp shop/old",
			change: all(tells("Uninstalling", "WaitingOnCleanup", "waiting for clusterserviceversion lamp.v1 (...)"), func(o *clusterState) {
				o.sub().DeletionTimestamp, o.csv().DeletionTimestamp = new(ago(time.Hour)), new(ago(time.Hour))
				o.csv().Status.Reason = operatorsv1alpha1.CSVReasonWaitingForCleanupToComplete
				api.SetCause(o.csv(), &api.Cause{Reason: api.ReasonFinalizersRemaining})
				o.csv().Status.Message = "waiting for custom resources: 1 left, first Lamp shop/old; Lamp shop/old has been blocked for more than a minute by the finalizers example.com/never"
				o.csv().Status.Cleanup.PendingDeletion = []operatorsv1alpha1.ResourceList{{Group: "example.com", Kind: "Lamp", Instances: []operatorsv1alpha1.ResourceInstance{{Namespace: "shop", Name: "old"}}}}
			}),
			summary: []string{"Lamp shop/old has finalizers", "example.com/never"},
		},
		{
			reason: "another operator needs what is uninstalled", state: explain.Broken, code: explain.CodeUninstallBlocked,
			change: all(tells("Uninstalling", "StillRequired", "clusterserviceversion torch.v1 requires an operator; uninstall the operator that requires it too"), func(o *clusterState) {
				o.sub().DeletionTimestamp = new(ago(time.Hour))
			}),
			summary: []string{"torch.v1 requires an operator"},
		},
		{
			reason: "a version that may not be seen is told of by its Subscription", state: explain.Broken, code: explain.CodeVersionFailing, object: object,
			change: all(unreadable, tells("ClusterServiceVersionUnhealthy", "RequirementsNotMet",
				"clusterserviceversion lamp.v1 is in phase Pending: one or more requirements couldn't be found; lamp.v2 is available and will be installed once lamp.v1 is healthy; see status.requirementStatus for the missing requirements; to apply the objects of the plan again, delete InstallPlan install-a")),
			summary: []string{"lamp.v1 is in phase Pending: one or more requirements couldn't be found", "to apply the objects of the plan again, delete InstallPlan install-a"},
			remedy:  "Fix the cause that the status shows.",
		},
		{
			reason: "a version that may not be seen has a reason", state: explain.Broken, code: explain.CodeDeploymentNotAvailable, object: object,
			change: all(unreadable, tells("ClusterServiceVersionUnhealthy", "InstallCheckFailed",
				"clusterserviceversion lamp.v1 is in phase Failed: install timeout: deployment lamp is not ready; see its pods")),
			summary: []string{"install timeout: deployment lamp is not ready; see its pods"}, remedy: "See its pods and their Events.",
		},
		{
			reason: "what the next version waits for is no remedy", state: explain.Broken, code: explain.CodeVersionFailing, object: object,
			change: all(unreadable, tells("ClusterServiceVersionUnhealthy", "ComponentUnhealthy",
				"clusterserviceversion lamp.v1 is in phase Failed: the wick is wet; lamp.v2 is available and will be installed once lamp.v1 is healthy, or at once if spec.upgradeStrategy of OperatorGroup group is TechPreviewUnsafeFailForward")),
			summary: []string{"lamp.v1 is in phase Failed: the wick is wet"}, remedy: "Fix the cause that the status shows.",
		},
		{
			reason: "its namespace is being deleted", state: explain.Broken, code: explain.CodeNamespaceTerminating, object: "Namespace shop",
			change: func(o *clusterState) {
				o.sub().DeletionTimestamp, o.sub().Finalizers = new(ago(time.Hour)), []string{"example.com/never"}
				o.OperatorGroups, o.Versions = nil, nil
				namespace := corev1.Namespace{ObjectMeta: meta("", "shop")}
				namespace.DeletionTimestamp = new(ago(time.Hour))
				o.Terminating = append(o.Terminating, namespace)
			},
			summary: []string{"namespace shop is being deleted since 2026-03-02T08:00:00Z", "example.com/never"}, remedy: "finalizers example.com/never",
		},
		{
			reason: "a namespace that may not be read and takes nothing", state: explain.Held, code: explain.CodeNamespaceTerminating, object: "Namespace shop",
			change: all(versionIs(failed, operatorsv1alpha1.CSVReasonComponentFailed,
				`install strategy failed: deployments.apps "lamp" is forbidden: unable to create new content in namespace shop because it is being terminated`),
				func(o *clusterState) { o.OperatorGroups = nil }),
			summary: []string{"namespace shop is being deleted"},
		},
		{
			reason: "a finalizer of another controller holds it", state: explain.Held, code: explain.CodeUninstallBlocked,
			change: func(o *clusterState) {
				o.sub().DeletionTimestamp, o.sub().Finalizers = new(ago(time.Hour)), []string{"example.com/never"}
			},
			summary: []string{"but has finalizers: example.com/never"}, remedy: "the controller of the finalizers example.com/never",
		},
		{
			reason: "it is being installed", state: explain.Progressing, code: explain.CodeInProgress, object: object,
			change: versionIs(operatorsv1alpha1.CSVPhaseInstallReady, operatorsv1alpha1.CSVReasonRequirementsMet, "all requirements found, attempting install"), summary: []string{"ClusterServiceVersion lamp.v1 is in phase InstallReady"},
		},
	})
}
