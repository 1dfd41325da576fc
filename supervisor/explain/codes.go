package explain

import "slices"

// Codes of findings. They are part of the machine-readable output and do not change.
const (
	CodeNotInstalled                       = "NotInstalled"
	CodeSupervisorNotRunning               = "SupervisorNotRunning"
	CodePackageManifestsUnavailable        = "PackageManifestsUnavailable"
	CodeUninstallBlocked                   = "UninstallBlocked"
	CodeCleanupBlocked                     = "CleanupBlocked"
	CodeConfigInvalid                      = "ConfigInvalid"
	CodeNamespaceTerminating               = "NamespaceTerminating"
	CodeOperatorGroupMissing               = "OperatorGroupMissing"
	CodeOperatorGroupAmbiguous             = "OperatorGroupAmbiguous"
	CodeOperatorGroupServiceAccountMissing = "OperatorGroupServiceAccountMissing"
	CodeOperatorGroupTargetsInvalid        = "OperatorGroupTargetsInvalid"
	CodeInstallModeUnsupported             = "InstallModeUnsupported"
	CodeCatalogNotFound                    = "CatalogNotFound"
	CodeCatalogExcluded                    = "CatalogExcluded"
	CodeCatalogOutOfScope                  = "CatalogOutOfScope"
	CodeCatalogSpecInvalid                 = "CatalogSpecInvalid"
	CodeCatalogConfigMapUnusable           = "CatalogConfigMapUnusable"
	CodeCatalogNodeLost                    = "CatalogNodeLost"
	CodeCatalogImagePullFailed             = "CatalogImagePullFailed"
	CodeCatalogCrashing                    = "CatalogCrashing"
	CodeCatalogUnschedulable               = "CatalogUnschedulable"
	CodeCatalogPodsRefused                 = "CatalogPodsRefused"
	CodeCatalogUnreachable                 = "CatalogUnreachable"
	CodeCatalogTLSFailing                  = "CatalogTLSFailing"
	CodeCatalogFailing                     = "CatalogFailing"
	CodeCatalogStarting                    = "CatalogStarting"
	CodePackageNotFound                    = "PackageNotFound"
	CodeChannelNotFound                    = "ChannelNotFound"
	CodeStartingVersionNotFound            = "StartingVersionNotFound"
	CodeDependencyNotFound                 = "DependencyNotFound"
	CodeConstraintsNotSatisfiable          = "ConstraintsNotSatisfiable"
	CodeResolutionFailed                   = "ResolutionFailed"
	CodeBundleImagePullFailed              = "BundleImagePullFailed"
	CodeBundleUnusable                     = "BundleUnusable"
	CodeImageRefused                       = "ImageRefused"
	CodePlanNeedsApproval                  = "PlanNeedsApproval"
	CodePlanStepAPIMissing                 = "PlanStepAPIMissing"
	CodePlanDefinitionUnsafe               = "PlanDefinitionUnsafe"
	CodePlanObjectOwnedByOther             = "PlanObjectOwnedByOther"
	CodePlanObjectUnsupported              = "PlanObjectUnsupported"
	CodePlanStepFailed                     = "PlanStepFailed"
	CodePlanDeclaredFailed                 = "PlanDeclaredFailed"
	CodePermissionDenied                   = "PermissionDenied"
	CodeQuotaExceeded                      = "QuotaExceeded"
	CodeResourcesRequired                  = "ResourcesRequired"
	CodeLimitRangeViolated                 = "LimitRangeViolated"
	CodePodSecurityRefused                 = "PodSecurityRefused"
	CodeAdmissionRefused                   = "AdmissionRefused"
	CodeWebhookUnavailable                 = "WebhookUnavailable"
	CodeObjectInvalid                      = "ObjectInvalid"
	CodeKubernetesTooOld                   = "KubernetesTooOld"
	CodeDefinitionMissing                  = "DefinitionMissing"
	CodeAPIMissing                         = "APIMissing"
	CodePermissionsMissing                 = "PermissionsMissing"
	CodeOwnerConflict                      = "OwnerConflict"
	CodeOperatorGroupConflict              = "OperatorGroupConflict"
	CodeProvidedAPIsStatic                 = "ProvidedAPIsStatic"
	CodeOperatorNotUpgradeable             = "OperatorNotUpgradeable"
	CodePredecessorNotReady                = "PredecessorNotReady"
	CodeVersionDeleted                     = "VersionDeleted"
	CodeVersionInvalid                     = "VersionInvalid"
	CodeWebhookResourcesBroken             = "WebhookResourcesBroken"
	CodeVersionFailing                     = "VersionFailing"
	CodeNodeLost                           = "NodeLost"
	CodeImagePullFailed                    = "ImagePullFailed"
	CodeOutOfMemory                        = "OutOfMemory"
	CodeContainerCrashing                  = "ContainerCrashing"
	CodeSecretOrConfigMapMissing           = "SecretOrConfigMapMissing"
	CodeVolumeMountFailed                  = "VolumeMountFailed"
	CodePodUnschedulable                   = "PodUnschedulable"
	CodeProbeFailing                       = "ProbeFailing"
	CodeServiceAccountMissing              = "ServiceAccountMissing"
	CodePodsRefused                        = "PodsRefused"
	CodeScaledDown                         = "ScaledDown"
	CodeDeploymentNotAvailable             = "DeploymentNotAvailable"
	CodeNewerVersionHeld                   = "NewerVersionHeld"
	CodePinned                             = "Pinned"
	CodePlanDeleted                        = "PlanDeleted"
	CodeFieldsDropped                      = "FieldsDropped"
	CodeCatalogContentWarnings             = "CatalogContentWarnings"
	CodeImageSettingsInvalid               = "ImageSettingsInvalid"
	CodeDeprecated                         = "Deprecated"
	CodeInProgress                         = "InProgress"
	CodeNotReconciled                      = "NotReconciled"
)

// CodeInfo describes a code of findings.
type CodeInfo struct {
	// Code is the code of the findings.
	Code string
	// Meaning is what is wrong.
	Meaning string
	// Remedy is the general remedy. Findings have it, or one that fits the case better.
	Remedy string
}

// Codes returns the codes of all findings, in the order in which causes are checked.
func Codes() []CodeInfo {
	return slices.Concat(clusterCodes(), catalogCodes(), resolutionCodes(), planCodes(), versionCodes(), podCodes(), noteCodes())
}

func clusterCodes() []CodeInfo {
	return []CodeInfo{
		{CodeNotInstalled, "The Subscription API is not installed in the cluster.", "Install the CustomResourceDefinitions of the release's prerequisites.yaml."},
		{CodeSupervisorNotRunning, "No supervisor holds the Lease chandlery-supervisor. Statuses may be out of date.", "Find out why no supervisor pod runs or becomes the leader."},
		{CodePackageManifestsUnavailable, "The APIService of PackageManifests is unavailable. Until it is available, deletions of namespaces do not finish.", "Find out why API servers do not reach port 10250 of a supervisor. If no supervisor is installed, delete the APIService."},
		{CodeUninstallBlocked, "Something blocks the uninstallation of an operator whose Subscription was deleted.", "Remove the obstacle in the message. To keep the operator, remove the annotation chandlery.dev/on-delete."},
		{CodeCleanupBlocked, "Something blocks the deletion of a ClusterServiceVersion.", "Remove the obstacle in the message. To skip the clean-up of custom resources, set the annotation chandlery.dev/skip-cleanup=true on the ClusterServiceVersion."},
		{CodeConfigInvalid, "A Subscription contains invalid settings for the Deployments of the operator.", "Correct spec.config or the annotation chandlery.dev/config."},
		{CodeNamespaceTerminating, "The namespace is being deleted. Nothing is installed in it.", "Wait until the namespace is deleted. If you want the operator, recreate the namespace. If the deletion does not finish, the status of the namespace lists the remaining objects."},
		{CodeOperatorGroupMissing, "The namespace has no OperatorGroup. Nothing is installed in it.", "Create an OperatorGroup. It selects the namespaces that the operators watch."},
		{CodeOperatorGroupAmbiguous, "The namespace has several OperatorGroups. Nothing is installed in it.", "Delete all but one."},
		{CodeOperatorGroupServiceAccountMissing, "The OperatorGroup names a ServiceAccount that does not exist.", "Create the ServiceAccount with the permissions that the operator needs, or remove spec.serviceAccountName."},
		{CodeOperatorGroupTargetsInvalid, "The supervisor cannot determine the namespaces of the OperatorGroup.", "Correct spec.targetNamespaces or spec.selector."},
		{CodeInstallModeUnsupported, "The operator cannot watch the namespaces that the OperatorGroup selects.", "Change the namespaces that the OperatorGroup selects, or install the operator in another namespace, with its own OperatorGroup."},
	}
}

func catalogCodes() []CodeInfo {
	return []CodeInfo{
		{CodeCatalogNotFound, "A Subscription names a CatalogSource that does not exist.", "Correct spec.source and spec.sourceNamespace, or create the CatalogSource."},
		{CodeCatalogExcluded, "The OperatorGroup excludes the catalogs of the global namespace.", "Remove the annotation olm.operatorframework.io/exclude-global-namespace-resolution from the OperatorGroup, or use a catalog in the namespace of the Subscription."},
		{CodeCatalogOutOfScope, "The CatalogSource is neither in the namespace of the Subscription nor in the global namespace.", "Set spec.source and spec.sourceNamespace to a CatalogSource in one of these namespaces, or create the CatalogSource there."},
		{CodeCatalogSpecInvalid, "The spec of a CatalogSource is invalid.", "Correct the field in the message."},
		{CodeCatalogConfigMapUnusable, "The ConfigMap of a catalog is missing or contains no catalog.", "Create or correct the ConfigMap."},
		{CodeCatalogNodeLost, "The node of a catalog's pod is lost.", "Replicas start on other nodes that have capacity. Repair the node, or delete the Node object."},
		{CodeCatalogImagePullFailed, "The image of a catalog cannot be pulled.", "Correct spec.image and spec.secrets of the CatalogSource, and check that the nodes can reach the image registry."},
		{CodeCatalogCrashing, "The container of a catalog exits with an error.", "Read the log of the pod, and check that spec.image is a catalog image."},
		{CodeCatalogUnschedulable, "No node accepts a pod of a catalog.", "Add node capacity, or change spec.grpcPodConfig of the CatalogSource."},
		{CodeCatalogPodsRefused, "The API server refuses the pods of a catalog.", "Change the quota, PodSecurity level or webhook that refuses the pods."},
		{CodeCatalogUnreachable, "Nothing answers at the address of a catalog.", "Correct spec.address. Check that the catalog serves at this address and that the supervisor's pods can reach it."},
		{CodeCatalogTLSFailing, "TLS to the address of a catalog fails, or its certificate expires soon.", "Correct the certificate or the annotation that the message names."},
		{CodeCatalogFailing, "A catalog fails for another reason.", "Fix the cause that the status shows."},
		{CodeCatalogStarting, "A catalog is new, or the supervisor is still reading its content.", "Wait a moment."},
	}
}

func resolutionCodes() []CodeInfo {
	return []CodeInfo{
		{CodePackageNotFound, "The catalog has no package with this name.", "Correct spec.name or spec.source of the Subscription."},
		{CodeChannelNotFound, "The package has no channel with this name.", "Correct spec.channel of the Subscription."},
		{CodeStartingVersionNotFound, "The channel does not have the version that spec.startingCSV names.", "Correct spec.startingCSV, or remove it."},
		{CodeDependencyNotFound, "No catalog contains a dependency of the operator.", "Add a catalog that contains the dependency, or choose another channel or version."},
		{CodeConstraintsNotSatisfiable, "No version satisfies all constraints.", "See the constraints in the output. Usually, another operator conflicts with the requested version."},
		{CodeResolutionFailed, "The supervisor could not decide what to install.", "Fix the cause in the message."},
		{CodeBundleImagePullFailed, "The image of a bundle cannot be pulled.", "Correct the credentials or the reference, and check that the supervisor's pods can reach the image registry."},
		{CodeImageRefused, "A rule for signatures refuses the image of a bundle or of a catalog.", "Sign the image as the rule requires, or ask an administrator to change the rule."},
		{CodeBundleUnusable, "The catalog contains a bundle that cannot be installed.", "Ask the publisher of the catalog to fix it, or choose another version."},
	}
}

func planCodes() []CodeInfo {
	return []CodeInfo{
		{CodePlanNeedsApproval, "An InstallPlan waits for approval.", "Approve it if you want the versions that it installs."},
		{CodePlanStepAPIMissing, "The cluster does not serve the kind of an object in the InstallPlan.", "Install the operator or API server that serves the kind. If Kubernetes has removed the kind, use a newer version of the operator."},
		{CodePlanDefinitionUnsafe, "A change to a CustomResourceDefinition would lose stored objects or make them invalid.", "Migrate the stored objects to another API version, or make them valid in the new schema."},
		{CodePlanObjectOwnedByOther, "An object in the InstallPlan belongs to another operator.", "Uninstall one of the two operators."},
		{CodePlanObjectUnsupported, "A bundle contains an object of an unsupported kind.", "Ask the author of the bundle to remove it. If the message names a supervisor flag, you can add the flag instead."},
		{CodePlanStepFailed, "A step of an InstallPlan cannot be applied.", "Fix the cause in the message. The plan then continues automatically."},
		{CodePlanDeclaredFailed, "Another client set the phase of an InstallPlan to Failed.", "None if the InstallPlan was Complete before. Otherwise, delete it; the supervisor then recreates it."},
		{CodePermissionDenied, "The supervisor, or the ServiceAccount that the OperatorGroup names, lacks a permission to apply an object.", "Grant the permission in the message."},
		{CodeQuotaExceeded, "A quota of the namespace is exhausted.", "Raise the quota, or delete objects that count against it."},
		{CodeResourcesRequired, "A quota of the namespace requires pods to set requests or limits.", "Set spec.config.resources of the Subscription, or add a LimitRange with defaults to the namespace."},
		{CodeLimitRangeViolated, "A LimitRange of the namespace does not allow the resources of an object.", "Set spec.config.resources of the Subscription to values that the LimitRange allows, or change the LimitRange."},
		{CodePodSecurityRefused, "The PodSecurity level of the namespace does not allow the pods.", "Set the label pod-security.kubernetes.io/enforce of the namespace to a less strict level. Or set the security context of the pods in the annotation chandlery.dev/config of the Subscription."},
		{CodeAdmissionRefused, "An admission webhook or policy refuses an object.", "Change the policy, or ask for an exception."},
		{CodeWebhookUnavailable, "The server of an admission webhook does not answer, so the API server refuses requests.", "Restore the webhook server. If the webhook is no longer in use, delete its configuration."},
		{CodeObjectInvalid, "The API server refuses an object as invalid.", "Correct the field in the message. If the object comes from a bundle, ask the author of the bundle to correct it."},
	}
}

func versionCodes() []CodeInfo {
	return []CodeInfo{
		{CodeKubernetesTooOld, "The operator needs a newer version of Kubernetes.", "Upgrade the cluster, or choose an older version of the operator."},
		{CodeDefinitionMissing, "A CustomResourceDefinition that the operator needs is missing, or does not have the required version.", "Install the operator that provides it."},
		{CodeAPIMissing, "The cluster does not serve an API that the operator needs.", "Install or repair the server that provides the API."},
		{CodePermissionsMissing, "The operator's ServiceAccount is missing or lacks permissions.", "Grant the permissions, or delete the InstallPlan. The supervisor then applies the objects of the plan again."},
		{CodeOwnerConflict, "Another operator provides the same kind or API.", "Uninstall one of the two operators."},
		{CodeOperatorGroupConflict, "Another operator provides the same API for some of the target namespaces.", "Uninstall one of the two operators, or give their OperatorGroups different target namespaces."},
		{CodeProvidedAPIsStatic, "An OperatorGroup with spec.staticProvidedAPIs does not list the APIs of the operator.", "Add the APIs to its annotation olm.providedAPIs, or set spec.staticProvidedAPIs to false."},
		{CodeOperatorNotUpgradeable, "The installed operator reports that it must not be upgraded now.", "Fix the cause in the operator's message, or override its OperatorCondition."},
		{CodePredecessorNotReady, "A version waits for the older version that it replaces.", "Fix the older version, or delete it."},
		{CodeVersionDeleted, "The ClusterServiceVersion that an InstallPlan created no longer exists.", "Delete the InstallPlan. The supervisor then recreates the InstallPlan and the ClusterServiceVersion."},
		{CodeVersionInvalid, "The ClusterServiceVersion is invalid.", "Ask its author to correct it, or choose another version."},
		{CodeWebhookResourcesBroken, "Certificates, Services or APIServices of an operator are missing or wrong.", "See the message. The supervisor repairs them automatically, unless another client changes them."},
		{CodeVersionFailing, "A ClusterServiceVersion fails for another reason.", "Fix the cause that the status shows."},
	}
}

func podCodes() []CodeInfo {
	return []CodeInfo{
		{CodeNodeLost, "The node of a pod is lost.", "Repair the node, or delete the Node object. Kubernetes then recreates the pod on another node."},
		{CodeImagePullFailed, "The image of a container cannot be pulled.", "Check that the image exists, that the nodes can reach the image registry, and that the pod has a pull secret."},
		{CodeOutOfMemory, "A container exceeded its memory limit.", "Raise its memory limit in spec.config.resources of the Subscription."},
		{CodeContainerCrashing, "A container repeatedly exits with an error.", "Read its log."},
		{CodeSecretOrConfigMapMissing, "A container needs a missing Secret or ConfigMap, or a missing key.", "Create the object or the key."},
		{CodeVolumeMountFailed, "A volume of a pod cannot be mounted.", "Read the Events of the pod."},
		{CodePodUnschedulable, "No node accepts the pod.", "Add node capacity, or change the resources and node selector in spec.config of the Subscription."},
		{CodeProbeFailing, "A container runs, but its probe fails.", "Read its log, and check the settings of the probe."},
		{CodeServiceAccountMissing, "The ServiceAccount of the pods does not exist.", "Create it, or delete the InstallPlan. The supervisor then applies the objects of the plan again."},
		{CodePodsRefused, "The API server refuses the pods of a Deployment.", "Fix the quota, policy or webhook in the message."},
		{CodeScaledDown, "The Deployment of an installed operator is scaled to 0 replicas.", "Scale it up again. If you do not want the operator, delete the Subscription and the ClusterServiceVersion."},
		{CodeDeploymentNotAvailable, "A Deployment is unavailable for another reason.", "See its pods and their Events."},
	}
}

func noteCodes() []CodeInfo {
	return []CodeInfo{
		{CodeNewerVersionHeld, "The catalog has a newer version, but its installation is blocked (held).", "See the constraints in the output. The installed version is not affected."},
		{CodePinned, "The annotation chandlery.dev/pin blocks newer versions of the operator.", "Remove the annotation, or set it to a newer version."},
		{CodePlanDeleted, "The InstallPlan of the installed version was deleted.", "No action is necessary. The installed objects are not affected."},
		{CodeFieldsDropped, "The API server did not store unknown fields of an object in a bundle.", "Tell the author of the bundle. If the field is valid, upgrade the CustomResourceDefinition or the cluster."},
		{CodeCatalogContentWarnings, "The ConfigMap of a catalog has problems, but the catalog is served.", "Correct the ConfigMap. The command \"registry validate\" lists all problems."},
		{CodeImageSettingsInvalid, "The supervisor's settings for image registries are invalid, and older ones are in use.", "Correct the file in the message."},
		{CodeDeprecated, "The catalog deprecates the package, the channel or the version.", "Follow the deprecation message of the catalog."},
		{CodeInProgress, "Work is in progress, and nothing blocks it.", "Wait a moment."},
		{CodeNotReconciled, "The supervisor did not reconcile an object in time.", "Read the log of the supervisor."},
	}
}

// remedyOf returns the general remedy for a code.
func remedyOf(code string) string {
	codes := Codes()
	if i := slices.IndexFunc(codes, func(c CodeInfo) bool { return c.Code == code }); i >= 0 {
		return codes[i].Remedy
	}
	return ""
}

// depth returns the position of a code in the order in which causes are checked.
func depth(code string) int {
	return slices.IndexFunc(Codes(), func(c CodeInfo) bool { return c.Code == code })
}
