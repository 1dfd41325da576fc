package rules

import "time"

var sentences = Group{Letter: "F", Title: "Exact sentences", Rules: []Rule{
	{
		ID: "F-CSV-RequirementsUnknown", Given: "a ClusterServiceVersion is created",
		Then: "the version's conditions have an entry Pending with the reason RequirementsUnknown and exactly OLM's message",
	},
	{
		ID: "F-CSV-AllRequirementsMet", Given: "a ClusterServiceVersion without requirements",
		Then: "the version's conditions have an entry InstallReady with the reason AllRequirementsMet and exactly OLM's message",
	},
	{
		ID: "F-CSV-Installing", Given: "a ClusterServiceVersion without requirements",
		Then: "the version's conditions have an entry Installing with the reason InstallSucceeded and exactly OLM's message",
	},
	{
		ID: "F-CSV-Succeeded", Given: "a ClusterServiceVersion whose Deployment becomes available",
		Then: "the version's conditions have an entry Succeeded with the reason InstallSucceeded and exactly OLM's message",
	},
	{
		ID: "F-CSV-RequirementsNotMet", Given: "a version requires a CustomResourceDefinition that does not exist",
		Then: "the version's conditions have an entry Pending with the reason RequirementsNotMet and exactly OLM's message",
	},
	{
		ID: "F-CSV-InstallWaiting", Given: "no node fits the pods of a version",
		Then: "the version's conditions have an entry Installing with the reason InstallWaiting and exactly OLM's message, which ends in the message of the condition Available of the Deployment",
	},
	{
		ID: "F-CSV-DeadlineExceeded", Given: "the Deployment of a version exceeds its progress deadline",
		Then: "the version's conditions have an entry Failed with the reason InstallCheckFailed and exactly OLM's message",
	},
	{
		ID: "F-CSV-NoOperatorGroup", Given: "the namespace of a version has no OperatorGroup",
		Then: "the version's conditions have an entry Failed with the reason NoOperatorGroup and exactly OLM's message",
	},
	{
		ID: "F-CSV-TooManyOperatorGroups", Given: "the namespace of a version has two OperatorGroups",
		Then: "the version's conditions have an entry Failed with the reason TooManyOperatorGroups and exactly OLM's message",
	},
	{
		ID: "F-CSV-OwnNamespaceUnsupported", Given: "the OperatorGroup targets its own namespace, and the version does not support that",
		Then: "the version's conditions have an entry Failed with the reason UnsupportedOperatorGroup and exactly OLM's message",
	},
	{
		ID: "F-CSV-AllNamespacesUnsupported", Given: "the OperatorGroup targets all namespaces, and the version does not support that",
		Then: "the version's conditions have an entry Failed with the reason UnsupportedOperatorGroup and exactly OLM's message",
	},
	{
		ID: "F-CSV-SingleNamespaceUnsupported", Given: "the OperatorGroup targets one other namespace, and the version does not support that",
		Then: "the version's conditions have an entry Failed with the reason UnsupportedOperatorGroup and exactly OLM's message",
	},
	{
		ID: "F-CSV-MultiNamespaceUnsupported", Given: "the OperatorGroup targets two namespaces, and the version does not support that",
		Then: "the version's conditions have an entry Failed with the reason UnsupportedOperatorGroup and exactly OLM's message",
	},
	{
		ID: "F-CSV-NoTargetNamespaces", Given: "the selector of the OperatorGroup matches no namespace",
		Then: "the version's conditions have an entry Failed with the reason NoTargetNamespaces and exactly OLM's message",
	},
	{
		ID: "F-CSV-InstallModesNowSupported", Given: "a version failed because of its OperatorGroup, whose targets then change",
		Then: "the version's conditions have an entry Pending with the reason RequirementsUnknown and exactly OLM's message",
	},
	{
		ID: "F-CSV-InvalidInstallModes", Given: "spec.installModes has a mode twice",
		Then: "the version's conditions have an entry Failed with the reason InvalidInstallModes and a message that begins as OLM's",
	},
	{
		ID: "F-CSV-UnknownStrategy", Given: "spec.install.strategy is unknown",
		Then: "the version's conditions have an entry Failed with the reason InvalidInstallStrategy and a message that begins as OLM's",
	},
	{
		ID: "F-CSV-WebhookAllGroups", Given: "a webhook has a rule for all API groups",
		Then: "the version's conditions have an entry Failed with the reason InvalidWebhookDescription and exactly OLM's message",
	},
	{
		ID: "F-CSV-WebhookOLMGroup", Given: "a webhook has a rule for operators.coreos.com",
		Then: "the version's conditions have an entry Failed with the reason InvalidWebhookDescription and exactly OLM's message",
	},
	{
		ID: "F-CSV-WebhookConfigurations", Given: "a webhook has a rule for webhook configurations",
		Then: "the version's conditions have an entry Failed with the reason InvalidWebhookDescription and exactly OLM's message",
	},
	{
		ID: "F-CSV-WebhookNameRepeated", Given: "two webhooks of a type have the same generateName",
		Then: "the version's conditions have an entry Failed with the reason InvalidWebhookDescription and exactly OLM's message",
	},
	{
		ID: "F-CSV-WebhookNameOfAnotherType", Given: "two webhooks of different types have the same generateName",
		Then: "the version's conditions have an entry Failed with the reason InvalidWebhookDescription and exactly OLM's message",
	},
	{
		ID: "F-CSV-ConversionModes", Given: "a version with a conversion webhook supports other modes than AllNamespaces",
		Then:       "the version's conditions have an entry Failed with the reason InvalidWebhookDescription and a message that contains OLM's",
		Difference: "the reason is InstallComponentFailed, after the requirements were found",
		Reason:     "the author learns of the error at once (decision 39)",
	},
	{
		ID: "F-CSV-ConversionWithoutCRDs", Given: "a conversion webhook names no CustomResourceDefinition",
		Then:       "the version's conditions have an entry Failed with the reason InvalidWebhookDescription and a message that contains OLM's",
		Difference: "the reason is InstallComponentFailed, after the requirements were found",
		Reason:     "the author learns of the error at once (decision 39)",
	},
	{
		ID: "F-CSV-OwnerConflict", Given: "another version in the namespace owns the same CustomResourceDefinition",
		Then: "the version's conditions have an entry Failed with the reason OwnerConflict and exactly OLM's message",
	},
	{
		ID: "F-CSV-RequirementsNoLongerMet", Given: "the ServiceAccount of a running version is deleted",
		Then: "the version's conditions have an entry Failed with the reason RequirementsNotMet and exactly OLM's message",
	},
	{
		ID: "F-CSV-RequirementsStillNotMet", Given: "the ServiceAccount of a running version is deleted",
		Then: "the version's conditions have an entry Pending with the reason RequirementsNotMet and exactly OLM's message, after the entry Failed",
	},
	{
		ID: "F-CSV-DeploymentMissing", Given: "the Deployment of a running version is deleted",
		Then: "the version's conditions have an entry Failed with the reason ComponentUnhealthy and exactly OLM's message",
	},
	{
		ID: "F-CSV-NeedsReinstall", Given: "the Deployment of a running version is deleted",
		Then: "the version's conditions have an entry Pending with the reason NeedsReinstall and exactly OLM's message",
	},
	{
		ID: "F-CSV-DeploymentWithoutHash", Given: "the label of the hash is removed from the Deployment of a running version",
		Then: "the version's conditions have an entry InstallReady with the reason ComponentUnhealthy and exactly OLM's message",
	},
	{
		ID: "F-CSV-DeploymentChanged", Given: "the Deployment in the spec of a running version changes",
		Then: "the version's conditions have an entry InstallReady with the reason ComponentUnhealthy and exactly OLM's message, apart from the hashes",
	},
	{
		ID: "F-CSV-DeploymentNotObserved", Given: "the Deployment of a version has no status",
		Then: "the version's conditions have an entry Installing with the reason InstallWaiting and exactly OLM's message",
	},
	{
		ID: "F-CSV-AvailabilityMissing", Given: "the status of the Deployment of a version has no conditions",
		Then: "the version's conditions have an entry Installing with the reason InstallWaiting and exactly OLM's message",
	},
	{
		ID: "F-CSV-ReplicasOutdated", Given: "the Deployment of a running version changes so that no node fits its pods",
		Then: "the version's conditions have an entry Installing with the reason InstallWaiting and exactly OLM's message",
	},
	{
		ID: "F-CSV-AnnotationMissing", Given: "a running version gets an annotation",
		Then: "the version's conditions have an entry InstallReady with the reason ComponentUnhealthy and exactly OLM's message",
	},
	{
		ID: "F-CSV-AnnotationUnexpected", Given: "an annotation of a running version gets another value",
		Then: "the version's conditions have an entry InstallReady with the reason ComponentUnhealthy and exactly OLM's message",
	},
	{
		ID: "F-CSV-BeingReplaced", Given: "a newer version replaces a running version",
		Then: "the version's conditions have an entry Replacing with the reason BeingReplaced and exactly OLM's message",
	},
	{
		ID: "F-CSV-FailForward", Given: "a newer version replaces a failed version, and the OperatorGroup allows operators to fail forward",
		Then: "the version's conditions have an entry Replacing with the reason BeingReplaced and exactly OLM's message",
	},
	{
		ID: "F-CSV-StaticProvidedAPIs", Given: "a version provides an API that its OperatorGroup with fixed APIs does not list",
		Then: "the version's conditions have an entry Failed with the reason CannotModifyStaticOperatorGroupProvidedAPIs and exactly OLM's message",
	},
	{
		ID: "F-CSV-IntersectingGroups", Given: "an OperatorGroup with a common target namespace provides the same API",
		Then: "the version's conditions have an entry Failed with the reason InterOperatorGroupOwnerConflict and exactly OLM's message",
	},
	{
		ID: "F-CSV-CertificateLost", Given: "the Secret with the certificate of a running version is deleted",
		Then: "the Secret is created again, and the version succeeds",
	},
	{
		ID: "F-CSV-CertificateLost-Phase", Given: "the Secret with the certificate of a running version is deleted",
		Then:       "the version is Failed with the reason APIServiceResourceIssue, and then installed again",
		Difference: "it is Pending with the reason NeedsCertRotation first",
		Reason:     "the certificate counts as an object of an APIService (decision 39)",
	},
	{
		ID: "F-CSV-WebhookConfigurationLost", Given: "the configuration of a webhook of a running version is deleted",
		Then:       "the version is InstallReady with the reason ComponentUnhealthy, and then installed again",
		Difference: "a minute later, it is not created again",
		Reason:     "requests must not pass without their webhook (decision 39)",
	},
	{
		ID: "F-CSV-History", Given: "a version with 20 entries in its conditions is installed again",
		Then: "its conditions have the 20 latest entries",
	},
	{
		ID: "F-Subscription-CatalogsHealthy", Given: "a Subscription to a catalog that answers",
		Then: "CatalogSourcesUnhealthy is False, and has the reason AllCatalogSourcesHealthy and exactly OLM's message",
	},
	{
		ID: "F-Subscription-CatalogMissing", Given: "a Subscription names a CatalogSource that does not exist",
		Then: "CatalogSourcesUnhealthy is True, and has the reason UnhealthyCatalogSourceFound and exactly OLM's message",
	},
	{
		ID: "F-Subscription-RequiresApproval", Given: "a Subscription with manual approval",
		Then: "InstallPlanPending has the reason RequiresApproval and no message",
	},
	{
		ID: "F-Subscription-InstallPlanMissing", Given: "the complete InstallPlan of a Subscription is deleted",
		Then: "InstallPlanMissing has the reason ReferencedInstallPlanNotFound and no message",
	},
	{
		ID: "F-Subscription-InstallPlanFailed", Given: "the cluster does not serve the kind of an object in the bundle",
		Then: "InstallPlanFailed has the reason InstallComponentFailed and exactly the message of the condition Installed of the plan",
	},
	{
		ID: "F-Subscription-NoCatalog", Given: "a Subscription names a CatalogSource that does not exist",
		Then: "ResolutionFailed has the reason ConstraintsNotSatisfiable and a message that begins as OLM's and contains its facts",
	},
	{
		ID: "F-Subscription-NoPackage", Given: "a Subscription names a package that does not exist",
		Then: "ResolutionFailed has the reason ConstraintsNotSatisfiable and a message that begins as OLM's and contains its facts",
	},
	{
		ID: "F-Subscription-NoChannel", Given: "a Subscription names a channel that does not exist",
		Then: "ResolutionFailed has the reason ConstraintsNotSatisfiable and a message that begins as OLM's and contains its facts",
	},
	{
		ID: "F-Subscription-NoStartingCSV", Given: "a Subscription names a starting version that does not exist",
		Then: "ResolutionFailed has the reason ConstraintsNotSatisfiable and a message that begins as OLM's and contains its facts",
	},
	{
		ID: "F-Subscription-NoDependency", Given: "no catalog has a package that the version requires",
		Then: "ResolutionFailed has the reason ConstraintsNotSatisfiable and a message that begins as OLM's and contains its facts",
	},
	{
		ID: "F-Subscription-CatalogAway", Given: "the catalog of a new Subscription does not answer",
		Then: "ResolutionFailed has the reason ErrorPreventedResolution and a message that begins as OLM's and ends in the error of the connection",
	},
	{
		ID: "F-Subscription-NoChannelHeads", Given: "the entries of a channel replace each other",
		Then:       "ResolutionFailed has the reason ConstraintsNotSatisfiable and a message that contains OLM's",
		Difference: "the reason is ErrorPreventedResolution",
		Reason:     "the catalog was read, and other Subscriptions are resolved (decision 39)",
	},
	{
		ID: "F-Subscription-PackageDeprecated", Given: "the catalog deprecates the package, the channel and the installed version",
		Then: "PackageDeprecated is True without a reason, and has exactly OLM's message",
	},
	{
		ID: "F-Subscription-ChannelDeprecated", Given: "the catalog deprecates the package, the channel and the installed version",
		Then: "ChannelDeprecated is True without a reason, and has exactly OLM's message",
	},
	{
		ID: "F-Subscription-BundleDeprecated", Given: "the catalog deprecates the package, the channel and the installed version",
		Then: "BundleDeprecated is True without a reason, and has exactly OLM's message",
	},
	{
		ID: "F-Subscription-SeveralChains", Given: "a channel has two entries, neither of which replaces the other",
		Then:       "ResolutionFailed has the reason ConstraintsNotSatisfiable and a message that contains OLM's",
		Difference: "the reason is ErrorPreventedResolution",
		Reason:     "the catalog was read, and other Subscriptions are resolved (decision 39)",
	},
	{
		ID: "F-Subscription-ConstraintUnreadable", Given: "the olm.constraint of a version has an unknown field",
		Then: "ResolutionFailed has the reason ErrorPreventedResolution and a message that contains OLM's",
	},
	{
		ID: "F-Subscription-ConstraintInvalid", Given: "the olm.constraint of a version has an invalid CEL rule",
		Then: "ResolutionFailed has the reason ErrorPreventedResolution and a message that contains OLM's",
	},
	{
		ID: "F-Subscription-CatalogUnhealthy", Given: "a Subscription names a CatalogSource with an invalid spec",
		Then: "CatalogSourcesUnhealthy is True, and has the reason UnhealthyCatalogSourceFound and exactly OLM's message",
	},
	{
		ID: "F-Subscription-NoRegistryClient", Given: "a Subscription names a CatalogSource with an invalid spec",
		Then: "ResolutionFailed has the reason ErrorPreventedResolution and exactly OLM's message",
	},
	{
		ID: "F-Subscription-SeveralGroups", Given: "the namespace of a Subscription has two OperatorGroups",
		Then:       "ResolutionFailed has the reason ErrorPreventedResolution and exactly OLM's message",
		Difference: "OLM writes nothing on the Subscription",
		Reason:     "The Subscription must state why nothing is installed (decision 39).",
	},
	{
		ID: "F-Subscription-BundleUnpacking", Given: "the image of an update is being pulled",
		Then: "BundleUnpacking has the reason UnpackingInProgress and no message", Untried: unpackPods,
	},
	{
		ID: "F6", Given: "the catalog deprecates the package, the channel and the installed version",
		Then: "Deprecated is True without a reason, and has the three messages in OLM's order",
	},
	{
		ID: "F6-Withdrawn", Given: "the catalog withdraws the deprecation of the channel, and then the others",
		Then: "Deprecated has the remaining messages, and is then absent with the other conditions; each change is one write",
	},
	{
		ID: "F7", Given: "the catalog deprecates a version that is not installed",
		Then: "the Subscription has no condition about deprecations, and is not written",
	},
	{
		ID: "F-Namespace-ResolutionFailed", Given: "the dependencies of a Subscription cannot be resolved",
		Then: "the namespace has a Warning with the reason ResolutionFailed and the message of the condition",
	},
	{
		ID: "F-Event-RequirementsUnknown", Given: "a ClusterServiceVersion is created",
		Then: "an Event has the reason RequirementsUnknown and exactly the message of the phase",
	},
	{
		ID: "F-Event-RequirementsNotMet", Given: "a version requires a CustomResourceDefinition that does not exist",
		Then: "an Event has the reason RequirementsNotMet and exactly the message of the phase",
	},
	{
		ID: "F-Event-WarningsWithoutOwner", Given: "a step without an owner has an unknown field",
		Then: "a Warning of the plan has the reason AppliedWithWarnings and exactly OLM's note",
	},
	{
		ID: "F9", Given: "a version is installed",
		Then: "an Event has the reason InstallSucceeded and exactly the message of the phase",
	},
	{
		ID: "F10", Given: "a webhook has a rule for all API groups",
		Then: "a Warning has the reason InvalidWebhookDescription and exactly the message of the phase",
	},
	{
		ID: "F10-OLMGroup", Given: "a webhook has a rule for operators.coreos.com",
		Then: "a Warning has the reason InvalidWebhookDescription and exactly the message of the phase",
	},
	{
		ID: "F10-Configurations", Given: "a webhook has a rule for webhook configurations",
		Then: "a Warning has the reason InvalidWebhookDescription and exactly the message of the phase",
	},
	{
		ID: "F10-Order", Given: "a webhook has a rule for operators.coreos.com, and then one for all API groups",
		Then: "the version's conditions have an entry Failed with OLM's message about the first rule",
	},
	{
		ID: "F14-Requirement", Given: "a version requires a CustomResourceDefinition that does not exist",
		Then:       "'supervisor explain' names the definition",
		Difference: "OLM has no such command",
		Reason:     "the message is only OLM's sentence (decision 37)", Untried: ownCommand,
	},
	{
		ID: "F14-Webhook", Given: "a webhook has a rule for all API groups",
		Then:       "'supervisor explain' names the field",
		Difference: "OLM has no such command",
		Reason:     "the message is only OLM's sentence (decision 37)", Untried: ownCommand,
	},
	{
		ID: "F14-InstallMode", Given: "a version does not support the targets of its OperatorGroup",
		Then:       "'supervisor explain' names the install mode and the OperatorGroup",
		Difference: "OLM has no such command",
		Reason:     "the message is only OLM's sentence (decision 37)", Untried: ownCommand,
	},
	{
		ID: "F14-Catalog", Given: "a CatalogSource is of an unknown type",
		Then:       "'supervisor explain' names the field",
		Difference: "OLM has no such command",
		Reason:     "the message is only OLM's sentence (decision 37)", Untried: ownCommand,
	},
	{
		ID: "F4", Given: "a version lacks two CustomResourceDefinitions, one of which is created",
		Then:       "the message stays, status.requirementStatus changes, and there is one Event",
		Difference: "a minute later, OLM has not looked at the requirements again",
		Reason:     "a created definition must be noticed at once (decision 39)",
	},
	{
		ID: "F8", Given: "a Subscription with manual approval",
		Then:       "the message of InstallPlanPending is empty, and an Event states how to approve",
		Difference: "OLM has no such Event",
		Reason:     "the message cannot state the remedy (decision 37)",
	},
	{
		ID: "F-Subscription-BundleUnpackFailed", Given: "nothing is installed, and the image of the bundle cannot be pulled",
		Then:       "BundleUnpackFailed begins as OLM's, and the state is UpgradeFailed",
		Difference: "the state is empty, and the Job fails minutes later",
		Reason:     "health checks take UpgradeFailed for a failure (decision 6)", Untried: unpackPods,
	},
	{
		ID: "F-Subscription-UpdateUnpackFailed", Given: "a version works, and the image of its update cannot be pulled",
		Then:       "BundleUnpackFailed begins as OLM's, and the state stays AtLatestKnown",
		Difference: "the Job fails minutes later",
		Reason:     "the error of the registry is known at once (decision 20)", Untried: unpackPods,
	},
	{
		ID: "F-Subscription-VersionFailed", Given: "nothing was installed before, and the version fails",
		Then:       "currentCSV names it, installedCSV does not, and the state is UpgradeFailed",
		Difference: "the state is AtLatestKnown, and installedCSV names the version",
		Reason:     "an installed version has succeeded (decision 6)",
	},
	{
		ID: "F3", Given: "a requirement is missing",
		Then: "the version is not written again, and has no further Event", Rest: 10 * time.Minute,
	},
	{
		ID: "F3-Group", Given: "a version does not support the targets of its OperatorGroup",
		Then: "the version is not written again, and has no further Event", Rest: 10 * time.Minute,
	},
	{
		ID: "F3-Subscription", Given: "a Subscription names a package that does not exist",
		Then: "the Subscription is not written again, and has no further Event", Rest: 10 * time.Minute,
	},
	{
		ID: "F3-CatalogSource", Given: "a CatalogSource is of an unknown type",
		Then: "the CatalogSource is not written again, and has no further Event", Rest: 10 * time.Minute,
	},
	{
		ID: "F-CSV-APIServicesMissing", Given: "the pods of a version that owns an API run, and do not serve it",
		Then: "the version's conditions have an entry Installing with the reason InstallWaiting and exactly OLM's message",
	},
	{
		ID: "F-CSV-APIServiceConflict", Given: "an APIService of the version exists without an owner",
		Then: "the version's conditions have an entry Failed with the reason OwnerConflict and exactly OLM's message",
	},
	{
		ID: "F-CSV-DeploymentRefused", Given: "the API server refuses the Deployment of a version",
		Then: "the version's conditions have an entry Failed with the reason InstallComponentFailed and a message that begins as OLM's",
	},
	{
		ID: "F-CSV-AccountForbidden", Given: "the account of the OperatorGroup may not write the Deployment of a version",
		Then: "the version's conditions have an entry Failed with the reason InstallComponentFailedNoRetry and a message that begins as OLM's",
	},
	{
		ID: "F-CSV-ConversionCRDNotOwned", Given: "a conversion webhook names a CustomResourceDefinition that the version does not own",
		Then:       "the version's conditions have an entry Failed with the reason InvalidWebhookDescription and a message that contains OLM's",
		Difference: "the reason is InstallComponentFailed, after the requirements were found",
		Reason:     "the author learns of the error at once (decision 39)",
	},
	{
		ID: "F-CSV-StaticNowSupported", Given: "a version failed because of the fixed APIs of its OperatorGroup, which are then no longer fixed",
		Then: "the version's conditions have an entry Pending with the reason RequirementsUnknown and exactly OLM's message",
	},
	{
		ID: "F-CSV-Replaced", Given: "a newer version has replaced a version",
		Then: "the version's conditions have an entry Deleting with the reason Replaced and exactly OLM's message",
	},
	{
		ID: "F-CSV-Copied", Given: "a version has a copy",
		Then: "the copy has the phase of the version, the reason Copied and exactly OLM's message",
	},
	{
		ID: "F-Subscription-InstallPlanInstalling", Given: "a step of the plan is retried",
		Then: "InstallPlanPending has the reason Installing and no message",
	},
	{
		ID: "F-Subscription-NoCatalogs", Given: "no catalog serves the namespace",
		Then: "CatalogSourcesUnhealthy is True, and has the reason NoCatalogSourcesFound and exactly OLM's message",
	},
	{
		ID: "F-Subscription-PlanRefused", Given: "the API server refuses the InstallPlan",
		Then: "BundleUnpackFailed has the reason EnsureInstallPlanFailed and a message that begins as OLM's",
	},
	{
		ID: "F-Subscription-NoGroup", Given: "the namespace of a Subscription has no OperatorGroup",
		Then:       "ResolutionFailed has the reason ErrorPreventedResolution and exactly OLM's message",
		Difference: "OLM writes nothing on the Subscription",
		Reason:     "The Subscription must state why nothing is installed (decision 39).",
	},
	{
		ID: "F-Event-CRDValidation", Given: "a step makes an existing object invalid, and its CustomResourceDefinition has a conversion webhook",
		Then: "a Warning of the plan has the reason CRDValidation and a note that begins as OLM's",
	},
	{
		ID: "F-Event-BundleUnpackFailed", Given: "the image of the bundle cannot be pulled",
		Then:       "a Warning of the Subscription has the reason BundleUnpackFailed and a note that begins as OLM's",
		Difference: "the Job fails minutes later",
		Reason:     "the error of the registry is known at once (decision 20)", Untried: unpackPods,
	},
	{
		ID: "F12", Given: "a version has an invalid webhook, and a requirement is missing",
		Then:       "the version is Failed with the reason InvalidWebhookDescription",
		Difference: "OLM judges webhooks after requirements, so the version stays Pending",
		Reason:     "The author learns of the error at once (decision 39).",
	},
	{
		ID: "F13", Given: "OLM wrote the statuses of the objects, a user changed a Deployment of OLM, and the supervisor takes over",
		Then: "no Deployment is written; each other object is written at most once, except for the connections of CatalogSources, and the conditions keep their reasons and messages",
	},
}}
