package explain

import "slices"

// Codes of findings. They are part of the machine-readable output and do not change.
const (
	CodeNotInstalled          = "NotInstalled"
	CodeSupervisorNotRunning  = "SupervisorNotRunning"
	CodeUninstallHeld         = "UninstallHeld"
	CodeCleanupHeld           = "CleanupHeld"
	CodeConfigInvalid         = "ConfigInvalid"
	CodeNamespaceGoing        = "NamespaceTerminating"
	CodeGroupMissing          = "OperatorGroupMissing"
	CodeGroupAmbiguous        = "OperatorGroupAmbiguous"
	CodeGroupAccountMissing   = "OperatorGroupServiceAccountMissing"
	CodeGroupTargetsInvalid   = "OperatorGroupTargetsInvalid"
	CodeInstallMode           = "InstallModeUnsupported"
	CodeCatalogMissing        = "CatalogNotFound"
	CodeCatalogExcluded       = "CatalogExcluded"
	CodeCatalogOutOfScope     = "CatalogOutOfScope"
	CodeCatalogInvalid        = "CatalogSpecInvalid"
	CodeCatalogConfigMap      = "CatalogConfigMapUnusable"
	CodeCatalogNodeLost       = "CatalogNodeLost"
	CodeCatalogImage          = "CatalogImagePullFailed"
	CodeCatalogCrashing       = "CatalogCrashing"
	CodeCatalogUnschedulable  = "CatalogUnschedulable"
	CodeCatalogPodsRefused    = "CatalogPodsRefused"
	CodeCatalogUnreachable    = "CatalogUnreachable"
	CodeCatalogFailing        = "CatalogFailing"
	CodeCatalogStarting       = "CatalogStarting"
	CodePackageMissing        = "PackageNotFound"
	CodeChannelMissing        = "ChannelNotFound"
	CodeStartingMissing       = "StartingVersionNotFound"
	CodeDependencyMissing     = "DependencyNotFound"
	CodeUnsatisfiable         = "ConstraintsNotSatisfiable"
	CodeResolutionFailed      = "ResolutionFailed"
	CodeBundleImage           = "BundleImagePullFailed"
	CodeBundleUnusable        = "BundleUnusable"
	CodePlanNeedsApproval     = "PlanNeedsApproval"
	CodePlanStepAPI           = "PlanStepAPIMissing"
	CodePlanDefinition        = "PlanDefinitionUnsafe"
	CodePlanConflict          = "PlanObjectOwnedByOther"
	CodePlanUnsupported       = "PlanObjectUnsupported"
	CodePlanStep              = "PlanStepFailed"
	CodePlanDeclaredFailed    = "PlanDeclaredFailed"
	CodeRightsMissing         = "RightsMissing"
	CodeQuotaExceeded         = "QuotaExceeded"
	CodeResourcesRequired     = "ResourcesRequired"
	CodeLimitRange            = "LimitRangeViolated"
	CodePodSecurity           = "PodSecurityRefused"
	CodeAdmission             = "AdmissionRefused"
	CodeWebhookAway           = "WebhookUnavailable"
	CodeObjectInvalid         = "ObjectInvalid"
	CodeKubernetesTooOld      = "KubernetesTooOld"
	CodeDefinitionMissing     = "DefinitionMissing"
	CodeAPIMissing            = "APIMissing"
	CodePermissionsMissing    = "PermissionsMissing"
	CodeOwnerConflict         = "OwnerConflict"
	CodeNotUpgradeable        = "OperatorNotUpgradeable"
	CodePredecessor           = "PredecessorNotReady"
	CodeVersionGone           = "VersionDeleted"
	CodeVersionInvalid        = "VersionInvalid"
	CodeServing               = "ServingResourcesBroken"
	CodeVersionFailing        = "VersionFailing"
	CodeNodeLost              = "NodeLost"
	CodeImagePull             = "ImagePullFailed"
	CodeOutOfMemory           = "OutOfMemory"
	CodeCrashLoop             = "ContainerCrashing"
	CodeConfigMissing         = "SecretOrConfigMapMissing"
	CodeVolume                = "VolumeMountFailed"
	CodeUnschedulable         = "PodUnschedulable"
	CodeProbe                 = "ProbeFailing"
	CodeServiceAccountMissing = "ServiceAccountMissing"
	CodePodsRefused           = "PodsRefused"
	CodeScaledDown            = "ScaledDown"
	CodeDeployment            = "DeploymentNotAvailable"
	CodeHeld                  = "NewerVersionHeld"
	CodePinned                = "Pinned"
	CodePlanGone              = "PlanDeleted"
	CodeFieldsDropped         = "FieldsDropped"
	CodeDeprecated            = "Deprecated"
	CodeUnderWay              = "UnderWay"
	CodeNotLookedAt           = "NotLookedAt"
)

// CodeInfo says what a code of a finding means.
type CodeInfo struct {
	// Code is that of findings.
	Code string
	// Meaning says what is the matter.
	Meaning string
	// Remedy says what to do. Findings have it, or better what fits the case.
	Remedy string
}

// Codes lists the codes of all findings, in the order in which causes are looked for.
func Codes() []CodeInfo {
	return slices.Concat(clusterCodes(), catalogCodes(), resolutionCodes(), planCodes(), versionCodes(), podCodes(), noteCodes())
}

func clusterCodes() []CodeInfo {
	return []CodeInfo{
		{CodeNotInstalled, "The API of Subscriptions is not installed in the cluster.", "Install the CustomResourceDefinitions: supervisor install-crds."},
		{CodeSupervisorNotRunning, "No supervisor holds the Lease chandlery-supervisor, so that nothing goes on and what statuses say may be old.", "See why the pods of the supervisor do not run or do not lead."},
		{CodeUninstallHeld, "A Subscription that is to take its operator along waits.", "Do what the cause says, or remove the annotation chandlery.dev/on-delete: the operator then stays."},
		{CodeCleanupHeld, "A ClusterServiceVersion is being deleted, and something of it cannot go.", "Let go of what is named, or annotate the ClusterServiceVersion with chandlery.dev/skip-cleanup=true to leave custom resources as they are."},
		{CodeConfigInvalid, "What a Subscription asks for the Deployments of its operator cannot be used.", "Correct spec.config or the annotation chandlery.dev/config."},
		{CodeNamespaceGoing, "The namespace is being deleted, so that nothing is installed in it.", "Wait until it is gone, and recreate it if the operator is wanted. Where it does not go, its status says what is left in it."},
		{CodeGroupMissing, "The namespace has no OperatorGroup, so that nothing is installed in it.", "Create one; it says which namespaces its operators serve."},
		{CodeGroupAmbiguous, "The namespace has several OperatorGroups, so that nothing is installed in it.", "Delete all but one."},
		{CodeGroupAccountMissing, "The OperatorGroup names a ServiceAccount that does not exist.", "Create the ServiceAccount with the rights that the operator needs, or take spec.serviceAccountName out."},
		{CodeGroupTargetsInvalid, "The OperatorGroup does not say which namespaces are meant.", "Correct spec.targetNamespaces or spec.selector."},
		{CodeInstallMode, "The operator cannot watch the namespaces that the OperatorGroup selects.", "Change the namespaces that the OperatorGroup selects, or install the operator in a namespace of its own."},
	}
}

func catalogCodes() []CodeInfo {
	return []CodeInfo{
		{CodeCatalogMissing, "A Subscription names a CatalogSource that does not exist.", "Correct spec.source and spec.sourceNamespace, or create the CatalogSource."},
		{CodeCatalogExcluded, "The OperatorGroup keeps the catalogs of the global namespace out.", "Remove its annotation olm.operatorframework.io/exclude-global-namespace-resolution, or name a catalog of the Subscription's own namespace."},
		{CodeCatalogOutOfScope, "A Subscription names a CatalogSource of a namespace that serves neither its own nor all of them.", "Name one of the Subscription's own namespace or of the global one in spec.source and spec.sourceNamespace, or create the CatalogSource there."},
		{CodeCatalogInvalid, "The spec of a CatalogSource makes no sense.", "Correct the field that is named."},
		{CodeCatalogConfigMap, "The ConfigMap of a catalog is missing or holds no catalog.", "Create or correct the ConfigMap."},
		{CodeCatalogNodeLost, "The nodes that a catalog runs on are lost.", "Bring the node back, or delete it; replicas are made elsewhere where there is room."},
		{CodeCatalogImage, "The image of a catalog cannot be pulled.", "Correct spec.image and spec.secrets of the CatalogSource, and see that the nodes get to the registry."},
		{CodeCatalogCrashing, "The container of a catalog ends with an error.", "See the log of the pod, and that spec.image is a catalog."},
		{CodeCatalogUnschedulable, "No node takes a pod of a catalog.", "Make room, or change spec.grpcPodConfig of the CatalogSource."},
		{CodeCatalogPodsRefused, "The pods of a catalog may not be made.", "Change what refuses them: a quota, PodSecurity or a webhook."},
		{CodeCatalogUnreachable, "Nothing answers at the address of a catalog.", "Correct spec.address, and see that the catalog serves there and can be reached from the supervisor's pods."},
		{CodeCatalogFailing, "A catalog does not serve, for the reason that its status gives.", "Do what the status says."},
		{CodeCatalogStarting, "A catalog has just been made, or is being read.", "Wait a moment."},
	}
}

func resolutionCodes() []CodeInfo {
	return []CodeInfo{
		{CodePackageMissing, "The catalog has no package of that name.", "Correct spec.name or spec.source of the Subscription."},
		{CodeChannelMissing, "The package has no channel of that name.", "Correct spec.channel of the Subscription."},
		{CodeStartingMissing, "The channel has no version of the name that spec.startingCSV gives.", "Correct spec.startingCSV, or remove it."},
		{CodeDependencyMissing, "The operator needs another one that no catalog has.", "Add a catalog that has it, or choose another channel or version."},
		{CodeUnsatisfiable, "No version fits together with what is there.", "See the reasons: mostly another operator is in the way."},
		{CodeResolutionFailed, "There was no answer to what is to be installed.", "Do what the message says."},
		{CodeBundleImage, "The image of a bundle cannot be pulled.", "Correct the credentials or the reference, and see that the supervisor's pods get to the registry."},
		{CodeBundleUnusable, "What the catalog names is no bundle that can be installed.", "Ask whoever publishes the catalog to fix it, or choose another version."},
	}
}

func planCodes() []CodeInfo {
	return []CodeInfo{
		{CodePlanNeedsApproval, "An InstallPlan waits for somebody to approve it.", "Approve it, if the versions that it brings are wanted."},
		{CodePlanStepAPI, "A step brings an object of a kind that the cluster does not serve.", "Install what serves that kind; where Kubernetes has removed it, a newer version of the operator is needed."},
		{CodePlanDefinition, "A step would change a CustomResourceDefinition so that stored objects are lost or no longer valid.", "Move the objects to another version first, or fix them."},
		{CodePlanConflict, "A step brings an object that belongs to another operator.", "Uninstall one of the two operators."},
		{CodePlanUnsupported, "A bundle brings an object of a kind that it may not.", "Ask the author of the bundle to remove it."},
		{CodePlanStep, "A step of an InstallPlan cannot be applied.", "Do what the message says; the plan then goes on by itself."},
		{CodePlanDeclaredFailed, "Another client set an InstallPlan to Failed.", "Delete the plan, and it is recreated."},
		{CodeRightsMissing, "Whoever has to do something lacks the right to.", "Grant the right that the message names."},
		{CodeQuotaExceeded, "A quota of the namespace has no room.", "Raise the quota, or make room in it."},
		{CodeResourcesRequired, "A quota of the namespace lets in only pods that say what they request or what limits them.", "Set spec.config.resources of the Subscription, or add a LimitRange with defaults to the namespace."},
		{CodeLimitRange, "A LimitRange of the namespace does not let in what an object asks for.", "Have the pods ask for what the LimitRange allows: spec.config.resources of the Subscription; or change the LimitRange."},
		{CodePodSecurity, "The namespace's level of PodSecurity does not allow the pods.", "Let the namespace allow more: label pod-security.kubernetes.io/enforce; or have the pods ask for less."},
		{CodeAdmission, "An admission webhook or policy refuses an object.", "Change the policy, or ask for an exception."},
		{CodeWebhookAway, "The server of an admission webhook does not answer, so that the API server refuses what it would be asked about.", "Bring the server of the webhook back, or delete its configuration if what it belongs to is gone."},
		{CodeObjectInvalid, "The API server refuses an object as invalid.", "Correct the field that is named; where it comes from the bundle, ask its author."},
	}
}

func versionCodes() []CodeInfo {
	return []CodeInfo{
		{CodeKubernetesTooOld, "The operator needs a newer Kubernetes.", "Upgrade the cluster, or choose an older version of the operator."},
		{CodeDefinitionMissing, "A CustomResourceDefinition that the operator needs is not there, or does not serve the version.", "Install the operator that brings it."},
		{CodeAPIMissing, "An API that the operator needs is not served.", "Install or fix what serves it."},
		{CodePermissionsMissing, "The operator's ServiceAccount is missing or lacks rights.", "Give it the rights, or have the InstallPlan apply its parts again by deleting it."},
		{CodeOwnerConflict, "Another operator has what this one brings.", "Uninstall one of the two operators."},
		{CodeNotUpgradeable, "The installed operator says that it must not be upgraded now.", "Do what it says, or override its OperatorCondition."},
		{CodePredecessor, "A version waits for the one that it replaces.", "Fix that one, or delete it."},
		{CodeVersionGone, "The ClusterServiceVersion that a plan has brought does not exist.", "Delete the InstallPlan, and it is recreated."},
		{CodeVersionInvalid, "A ClusterServiceVersion says what cannot be.", "Ask its author to correct it, or choose another version."},
		{CodeServing, "Certificates, Services or APIServices of an operator are not as they should be.", "See the message; they are repaired by themselves unless another client changes them."},
		{CodeVersionFailing, "A ClusterServiceVersion is not well, for the reason that its status gives.", "Do what the status says."},
	}
}

func podCodes() []CodeInfo {
	return []CodeInfo{
		{CodeNodeLost, "The node of a pod is lost.", "Bring the node back, or delete it, so that the pod is made elsewhere."},
		{CodeImagePull, "The image of a container cannot be pulled.", "See that the image exists, that the nodes get to the registry, and that the pod has a pull secret."},
		{CodeOutOfMemory, "A container was killed because it used more memory than its limit.", "Raise its memory limit: spec.config.resources of the Subscription."},
		{CodeCrashLoop, "A container ends with an error again and again.", "See its log."},
		{CodeConfigMissing, "A Secret or ConfigMap that a container needs does not exist, or lacks a key.", "Create it."},
		{CodeVolume, "A volume of a pod cannot be mounted.", "See the Event of the pod."},
		{CodeUnschedulable, "No node takes the pod.", "Make room, or change what the pod asks for: spec.config of the Subscription."},
		{CodeProbe, "A container runs and its probe fails.", "See its log, and whether the probe fits."},
		{CodeServiceAccountMissing, "The ServiceAccount that the pods are to run as does not exist.", "Create it, or delete the InstallPlan to have its parts applied again."},
		{CodePodsRefused, "The pods of a Deployment may not be made.", "Change what the message names."},
		{CodeScaledDown, "The Deployment of an operator that is installed is scaled to no replicas.", "Scale it up again, or delete the Subscription and the ClusterServiceVersion if the operator is not wanted."},
		{CodeDeployment, "A Deployment is not available, for a reason that cannot be seen further.", "See its pods and their Events."},
	}
}

func noteCodes() []CodeInfo {
	return []CodeInfo{
		{CodeHeld, "The catalog has a newer version that cannot be had now.", "See the reasons; what is installed is well."},
		{CodePinned, "The annotation chandlery.dev/pin keeps the operator at a version.", "Remove the annotation, or name a newer version in it."},
		{CodePlanGone, "The InstallPlan of what is installed was deleted.", "Nothing: what it brought stays."},
		{CodeFieldsDropped, "The API server warned about an object of a bundle; a field that it does not know was not stored.", "Tell the author of the bundle; upgrade the CustomResourceDefinition or the cluster if it should know the field."},
		{CodeDeprecated, "The catalog advises against the package, the channel or the version.", "Do what its authors write."},
		{CodeUnderWay, "Something is being done, and nothing keeps it.", "Wait a moment."},
		{CodeNotLookedAt, "The supervisor has not looked at an object yet, though it had time to.", "See the log of the supervisor."},
	}
}

// remedyOf is what helps against a code in general.
func remedyOf(code string) string {
	codes := Codes()
	if i := slices.IndexFunc(codes, func(c CodeInfo) bool { return c.Code == code }); i >= 0 {
		return codes[i].Remedy
	}
	return ""
}

// depth is where a code stands in the order in which causes are looked for.
func depth(code string) int {
	return slices.IndexFunc(Codes(), func(c CodeInfo) bool { return c.Code == code })
}
