package api

// Condition types of Subscriptions that operators.coreos.com does not have. The Subscription controller sets them;
// `kubectl chandlery explain` reads them.
const (
	// ConditionVersionUnhealthy is True while the newest version of a Subscription is Failed or Unknown, or
	// lacks a requirement although its plan is complete.
	ConditionVersionUnhealthy = "ClusterServiceVersionUnhealthy"
	// ConditionNewerVersionHeld is True while a newer version exists and cannot be installed. The
	// Subscription itself has no error.
	ConditionNewerVersionHeld = "NewerVersionHeld"
	// ConditionConfigInvalid is True while the settings of a Subscription are invalid. The Deployments of its operator
	// stay unchanged, unless the settings only name containers that no Deployment has.
	ConditionConfigInvalid = "ConfigInvalid"
	// ConditionBlocked is True while ResolutionFailed or BundleUnpackFailed is. Its reason is more exact than
	// theirs, and its message is what to do.
	ConditionBlocked = "Blocked"
	// ConditionUninstalling is True while a deleted Subscription waits for its operator to be uninstalled.
	ConditionUninstalling = "Uninstalling"
)

// ConditionPulledByNode is True for a bundle image in the status of an InstallPlan that a node has pulled. Its reason is
// why the supervisor has not.
const ConditionPulledByNode = "PulledByNode"

// ReasonNodeOnly is the reason of ConditionPulledByNode if only nodes pull images.
const ReasonNodeOnly = "NodeOnly"

// Reasons of conditions of Subscriptions. The Subscription controller sets them; OLM's clients compare them.
const (
	// ReasonConstraintsNotSatisfiable is the reason of ResolutionFailed where no version satisfies all
	// constraints.
	ReasonConstraintsNotSatisfiable = "ConstraintsNotSatisfiable"
	// ReasonErrorPreventedResolution is the reason of ResolutionFailed for any other error.
	ReasonErrorPreventedResolution = "ErrorPreventedResolution"
	// ReasonErrorPreventedUnpacking is the reason of BundleUnpackFailed for a bundle that cannot be used.
	ReasonErrorPreventedUnpacking = "ErrorPreventedUnpacking"
	// ReasonEnsureInstallPlanFailed is the reason of BundleUnpackFailed for a plan that could not be created.
	ReasonEnsureInstallPlanFailed = "EnsureInstallPlanFailed"
	// ReasonBundleUnpackFailed is the reason of BundleUnpackFailed for an image that cannot be pulled now. It is
	// the reason of such a cause of an InstallPlan too.
	ReasonBundleUnpackFailed = "BundleUnpackFailed"
	// ReasonUnpackingInProgress is the reason of BundleUnpacking.
	ReasonUnpackingInProgress = "UnpackingInProgress"
)

// Reasons of ConditionBlocked of Subscriptions; ConstraintsNotSatisfiable and BundleUnpackFailed are such reasons
// too.
const (
	// ReasonCatalogNotFound means that no catalog in scope is the one of spec.source.
	ReasonCatalogNotFound = "CatalogNotFound"
	// ReasonCatalogExcluded means that the OperatorGroup excludes the catalogs of the global namespace.
	ReasonCatalogExcluded = "CatalogExcluded"
	// ReasonCatalogUnavailable means that the catalog has no content, or that it cannot be read.
	ReasonCatalogUnavailable = "CatalogUnavailable"
	// ReasonOperatorGroupInvalid means that the namespace does not have exactly one OperatorGroup.
	ReasonOperatorGroupInvalid = "OperatorGroupInvalid"
	// ReasonPackageNotFound means that the catalog has no package of the name in spec.name.
	ReasonPackageNotFound = "PackageNotFound"
	// ReasonChannelNotFound means that the package has no channel of the name in spec.channel.
	ReasonChannelNotFound = "ChannelNotFound"
	// ReasonStartingVersionNotFound means that the channel has no version of the name in spec.startingCSV.
	ReasonStartingVersionNotFound = "StartingVersionNotFound"
	// ReasonPinNotFound means that the channel has no version of the name in the pin.
	ReasonPinNotFound = "PinNotFound"
	// ReasonDependencyNotFound means that no catalog in scope has an operator that the version requires.
	ReasonDependencyNotFound = "DependencyNotFound"
	// ReasonPackageClaimed means that another Subscription of the namespace has the package.
	ReasonPackageClaimed = "PackageClaimed"
	// ReasonVersionAmbiguous means that an installed version matches several Subscriptions, or that several installed
	// versions match one Subscription.
	ReasonVersionAmbiguous = "VersionAmbiguous"
	// ReasonBundleUnusable means that the manifests of a bundle cannot be used.
	ReasonBundleUnusable = "BundleUnusable"
	// ReasonResolutionFailed means that the resolution ended with another error.
	ReasonResolutionFailed = "ResolutionFailed"
)

// Reasons of conditions of Subscriptions that OLM does not have.
const (
	// ReasonPinned is the reason of ConditionNewerVersionHeld for a pinned Subscription.
	ReasonPinned = "Pinned"
	// ReasonInvalidAnnotation is the reason of ConditionConfigInvalid for an annotation that does not match its schema.
	ReasonInvalidAnnotation = "InvalidAnnotation"
	// ReasonUnknownContainer is the reason of ConditionConfigInvalid for a container that no Deployment has.
	ReasonUnknownContainer = "UnknownContainer"
)

// Reasons of ConditionUninstalling.
const (
	// ReasonStillRequired means that another operator requires the one that is uninstalled.
	ReasonStillRequired = "StillRequired"
	// ReasonWaitingOnInstallPlan means that a plan of the Subscription is in progress.
	ReasonWaitingOnInstallPlan = "WaitingOnInstallPlan"
	// ReasonWaitingOnCleanup means that a ClusterServiceVersion is being deleted.
	ReasonWaitingOnCleanup = "WaitingOnCleanup"
	// ReasonWaitingOnDependencies means that Subscriptions of dependencies are being deleted.
	ReasonWaitingOnDependencies = "WaitingOnDependencies"
)

// Condition types of CatalogSources. The CatalogSource controller sets them; `kubectl chandlery explain` reads
// those about replicas and connections.
const (
	// ConditionAvailable is True while a replica of the catalog serves.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while replicas are rolled out.
	ConditionProgressing = "Progressing"
	// ConditionContentWarnings is True if the ConfigMap of the catalog has problems that do not prevent serving it.
	ConditionContentWarnings = "ContentWarnings"
	// ConditionImageSettingsInvalid is True while the supervisor's settings for image registries are invalid.
	ConditionImageSettingsInvalid = "ImageSettingsInvalid"
	// ConditionConnectionSecured is True while the connection to spec.address, or to all replicas, uses TLS. Its reasons are
	// those of package dialtls.
	ConditionConnectionSecured = "ConnectionSecured"
	// ConditionPackageManifestsIncomplete is True while PackageManifests leave out channels of the catalog.
	ConditionPackageManifestsIncomplete = "PackageManifestsIncomplete"
	// ConditionTemplatesResolved is True if the image template of a catalog is resolved. OLM sets it too.
	ConditionTemplatesResolved = "TemplatesHaveResolved"
	// ConditionResolvedImage has the resolved image as its message. OLM sets it too.
	ConditionResolvedImage = "ResolvedImage"
)

// Reasons of ConditionAvailable and ConditionProgressing. Reasons of pods, containers and Deployments that block a
// roll-out are reasons too.
const (
	// ReasonReplicasServe means that at least one replica serves.
	ReasonReplicasServe = "ReplicasServe"
	// ReasonNoReplicaServes means that no replica serves.
	ReasonNoReplicaServes = "NoReplicaServes"
	// ReasonRollingOut means that replicas of the newest specification are being created.
	ReasonRollingOut = "RollingOut"
	// ReasonRolledOut means that all replicas have the newest specification and serve.
	ReasonRolledOut = "RolledOut"
	// ReasonStartingReplicas means that all replicas have been created and some do not serve yet.
	ReasonStartingReplicas = "StartingReplicas"
	// ReasonNotServing means that a replica runs and does not answer health checks.
	ReasonNotServing = "NotServing"
	// ReasonAskingRegistry means that the digest of the image is not known yet.
	ReasonAskingRegistry = "AskingRegistry"
	// ReasonBlocked means that an error prevents the roll-out. It is also the reason of Events of a
	// ClusterServiceVersion about the detail of its cause.
	ReasonBlocked = "Blocked"
	// ReasonReplicaLost means that a replica is on a lost node, or does not answer.
	ReasonReplicaLost = "ReplicaLost"
	// ReasonPolicyRefused means that a rule for signatures refuses the image. It is also a reason of ConditionBlocked and of
	// causes of InstallPlans.
	ReasonPolicyRefused = "PolicyRefused"
	// ReasonSpecInvalid means that nothing is changed because the spec is invalid.
	ReasonSpecInvalid = "SpecInvalid"
)

// ReasonValidationWarnings is the reason of ConditionContentWarnings: the message has the first problems.
const ReasonValidationWarnings = "ValidationWarnings"

// ReasonBrokenChannels is the reason of ConditionPackageManifestsIncomplete: the message has the channels.
const ReasonBrokenChannels = "BrokenChannels"

// ReasonInvalidFiles is the reason of ConditionImageSettingsInvalid: the message has the file, the line and the remedy.
const ReasonInvalidFiles = "InvalidFiles"

// Reasons of ConditionTemplatesResolved and ConditionResolvedImage. OLM has them.
const (
	// ReasonAllTemplatesResolved means that the image template is resolved.
	ReasonAllTemplatesResolved = "AllTemplatesResolved"
	// ReasonUnableToResolve means that the image template cannot be resolved.
	ReasonUnableToResolve = "UnableToResolve"
)

// ReasonReplicaUnreachable is the reason of the condition Ready of a pod whose replica does not answer
// while others do. The failover controller sets it; the CatalogSource controller reads it.
const ReasonReplicaUnreachable = "ReplicaUnreachable"

// ConditionTargetsResolved is False while spec.targetNamespaces or spec.selector of an OperatorGroup is
// invalid. The previous targets stay. The OperatorGroup controller sets it; `kubectl chandlery explain` reads it.
const ConditionTargetsResolved = "TargetsResolved"

// Reasons of the condition DisabledCopiedCSVs of the OLMConfig.
const (
	// ReasonCopiedCSVsEnabled means that versions for all namespaces are copied.
	ReasonCopiedCSVsEnabled = "CopiedCSVsEnabled"
	// ReasonCopiedCSVsDisabled means that versions for all namespaces are not copied.
	ReasonCopiedCSVsDisabled = "CopiedCSVsDisabled"
)

// ConditionIneffectiveSettings of the OLMConfig is True if it has a setting that the supervisor does not use, and
// absent otherwise.
const ConditionIneffectiveSettings = "IneffectiveSettings"

// ReasonPackageManifestsFollowCatalogs is the reason of ConditionIneffectiveSettings.
const ReasonPackageManifestsFollowCatalogs = "PackageManifestsFollowCatalogs"

// Reasons of Events. `kubectl chandlery explain` reads ReasonAppliedWithWarnings.
const (
	// ReasonCopyBlocked means that a namespace cannot have the copy of a ClusterServiceVersion.
	ReasonCopyBlocked = "CopyBlocked"
	// ReasonObjectTakenOver means that a plan updated an object that existed before.
	ReasonObjectTakenOver = "ObjectTakenOver"
	// ReasonCRDValidation means that custom resources would be invalid without conversion.
	ReasonCRDValidation = "CRDValidation"
	// ReasonAppliedWithWarnings means that the API server accepted an object with warnings.
	ReasonAppliedWithWarnings = "AppliedWithWarnings"
	// ReasonOrphanDeleted means that the supervisor deleted an APIService whose owner does not exist.
	ReasonOrphanDeleted = "OrphanDeleted"
	// ReasonProxiesUnknown means that a version waits for the proxies of the cluster.
	ReasonProxiesUnknown = "ProxiesUnknown"
)

// Reasons of Events on the Lease of the supervisors.
const (
	// ReasonSteppingDown means that a process that led stops because another lifecycle manager works.
	ReasonSteppingDown = "SteppingDown"
	// ReasonWaitingToLead means that a process waits until another lifecycle manager has stopped.
	ReasonWaitingToLead = "WaitingToLead"
)
