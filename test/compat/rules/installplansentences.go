package rules

// installPlanSentences are the sentences of InstallPlans.
var installPlanSentences = []Rule{
	{
		ID: "F-InstallPlan-Complete", Given: "a plan whose steps can be applied",
		Then: "it is Complete, without a message and with an empty condition Installed",
	},
	{
		ID: "F-InstallPlan-NoGroup", Given: "the namespace of an approved plan has no OperatorGroup",
		Then: "Installed is False, and its message is exactly OLM's",
	},
	{
		ID: "F-InstallPlan-SeveralGroups", Given: "the namespace of an approved plan has two OperatorGroups",
		Then: "Installed is False, and its message is exactly OLM's",
	},
	{
		ID: "F-InstallPlan-GroupAgain", Given: "the OperatorGroup of an approved plan is created later",
		Then: "the plan is Complete, and no message remains",
	},
	{
		ID: "F-InstallPlan-APINotServed", Given: "the cluster does not serve the kind of a step",
		Then: "the plan becomes Failed; its message and Installed, its last condition, contain OLM's sentence",
	},
	{
		ID: "F-InstallPlan-Retrying", Given: "a step of a plan fails",
		Then: "while the plan is Installing, its message begins as OLM's",
	},
	{
		ID: "F-InstallPlan-StoredVersion", Given: "a step removes a stored version from a CustomResourceDefinition",
		Then: "the message contains OLM's sentence",
	},
	{
		ID: "F-InstallPlan-ObjectInvalid", Given: "a step changes a CustomResourceDefinition so that an existing object is invalid",
		Then: "the message contains OLM's sentence",
	},
	{
		ID: "F-InstallPlan-KindNotServed", Given: "the cluster serves the API group of a step without its kind",
		Then: "the plan becomes Failed; its message and Installed, its last condition, contain OLM's sentence",
	},
	{
		ID: "F-InstallPlan-KindNotSupported", Given: "a plan must not contain the kind of a step",
		Then: "the plan becomes Failed; its message and Installed, its last condition, contain OLM's sentence",
	},
	{
		ID: "F-InstallPlan-CRDVersion", Given: "a step has a CustomResourceDefinition of an unknown API version",
		Then: "the plan becomes Failed; its message and Installed, its last condition, contain OLM's sentence",
	},
	{
		ID: "F-InstallPlan-CRDRemoved", Given: "a step has a CustomResourceDefinition of v1beta1, which Kubernetes no longer serves",
		Then: "the plan becomes Failed; its message and Installed, its last condition, contain OLM's sentence about a missing API",
	},
	{
		ID: "F-InstallPlan-CRDRefused", Given: "the API server refuses the update of a CustomResourceDefinition",
		Then: "the message contains OLM's sentence and the answer of the API server",
	},
	{
		ID: "F-InstallPlan-ManifestUnreadable", Given: "the manifest of a step cannot be decoded",
		Then: "the plan becomes Failed; its message and Installed, its last condition, contain OLM's sentence",
	},
	{
		ID: "F-InstallPlan-SecretMissing", Given: "a step refers to a Secret that does not exist",
		Then: "the plan becomes Failed; its message and Installed, its last condition, contain OLM's sentence",
	},
	{
		ID: "F-InstallPlan-DependentOwners", Given: "a step has a version that the plan does not name, and another version owns its CustomResourceDefinition",
		Then: "the plan becomes Failed; its message and Installed, its last condition, contain OLM's sentence",
	},
	{
		ID: "F-InstallPlan-SeveralOwners", Given: "a step has such a version, and two other versions own its CustomResourceDefinition",
		Then: "the plan becomes Failed; its message and Installed, its last condition, contain OLM's sentence",
	},
	{
		ID: "F-InstallPlan-AccountMissing", Given: "the ServiceAccount of the OperatorGroup does not exist",
		Then: "Installed is False, and its message is exactly OLM's",
	},
	{
		ID: "F-InstallPlan-RequiresApproval", Given: "a plan waits for approval",
		Then: "it has no message",
	},
}
