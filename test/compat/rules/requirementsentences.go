package rules

// requirementSentences are the sentences of entries of status.requirementStatus.
var requirementSentences = []Rule{
	{
		ID: "F-Requirement-CRDMissing", Given: "a version requires a CustomResourceDefinition that does not exist",
		Then: "status.requirementStatus has its entry with the status NotPresent and exactly OLM's message",
	},
	{
		ID: "F-Requirement-CRDVersion", Given: "a version requires a version of a CustomResourceDefinition that is not served",
		Then: "status.requirementStatus has its entry with the status NotPresent and exactly OLM's message",
	},
	{
		ID: "F-Requirement-CRDPresent", Given: "a version requires a CustomResourceDefinition that exists",
		Then: "status.requirementStatus has its entry with the status Present and exactly OLM's message",
	},
	{
		ID: "F-Requirement-NativeAPI", Given: "a version requires a native API that is served",
		Then: "status.requirementStatus has its entry with the status Present and OLM's name and message",
	},
	{
		ID: "F-Requirement-NativeAPIMissing", Given: "a version requires a native API that is not served",
		Then: "status.requirementStatus has its entry with the status NotPresent and OLM's name and message",
	},
	{
		ID: "F-Requirement-KubeVersion", Given: "the cluster is newer than spec.minKubeVersion",
		Then: "status.requirementStatus has its entry with the status Present and exactly OLM's message",
	},
	{
		ID: "F-Requirement-KubeVersionTooOld", Given: "the cluster is older than spec.minKubeVersion",
		Then: "status.requirementStatus has its entry with the status PresentNotSatisfied and exactly OLM's message",
	},
	{
		ID: "F-Requirement-KubeVersionInvalid", Given: "spec.minKubeVersion is no version",
		Then: "status.requirementStatus has its entry with the status PresentNotSatisfied and exactly OLM's message",
	},
	{
		ID: "F-Requirement-AccountMissing", Given: "the ServiceAccount of a version does not exist",
		Then: "status.requirementStatus has its entry with the status NotPresent and exactly OLM's message",
	},
	{
		ID: "F-Requirement-Account", Given: "the ServiceAccount of a version exists",
		Then: "status.requirementStatus has its entry with the status Present and no message",
	},
	{
		ID: "F-Requirement-AccountOfOther", Given: "another ClusterServiceVersion owns the ServiceAccount",
		Then: "status.requirementStatus has its entry with the status PresentNotSatisfied and exactly OLM's message",
	},
	{
		ID: "F-Requirement-RuleMissing", Given: "the ServiceAccount lacks a rule for its namespace",
		Then: "status.requirementStatus has its entry with the status PresentNotSatisfied and exactly OLM's message; the dependent entry has the rule as JSON in OLM's order of fields",
	},
	{
		ID: "F-Requirement-ClusterRuleMissing", Given: "the ServiceAccount lacks a rule for the cluster",
		Then: "status.requirementStatus has its entry with the status PresentNotSatisfied and exactly OLM's message; the dependent entry has the rule as JSON in OLM's order of fields",
	},
	{
		ID: "F-Requirement-APIServiceMissing", Given: "a version requires an APIService that does not exist",
		Then: "status.requirementStatus has its entry with the status NotPresent and no message",
	},
	{
		ID: "F-Requirement-DeploymentFound", Given: "a version owns an APIService and declares its Deployment",
		Then: "status.requirementStatus has its entry with the status DeploymentFound and no message",
	},
	{
		ID: "F-Requirement-CRDNotEstablished", Given: "a CustomResourceDefinition has the names of another one",
		Then: "status.requirementStatus has its entry with the status PresentNotAvailable and exactly OLM's message",
	},
	{
		ID: "F-Requirement-CRDOfOther", Given: "an update owns a CustomResourceDefinition that was applied with the former version only",
		Then: "status.requirementStatus has its entry with the status PresentNotSatisfied and exactly OLM's message",
	},
	{
		ID: "F-Requirement-APIServicePresent", Given: "a version requires an APIService that is available",
		Then: "status.requirementStatus has its entry with the status Present and no message",
	},
	{
		ID: "F-Requirement-RuleSatisfied", Given: "the ServiceAccount has the rule that the version needs",
		Then: "status.requirementStatus has its entry with the status Present; the dependent entry is Satisfied, and has the rule as JSON in OLM's order of fields",
	},
	{
		ID: "F-Requirement-DeploymentNotFound", Given: "a version owns an APIService and does not declare its Deployment",
		Then: "status.requirementStatus has its entry with the status DeploymentNotFound and no message",
	},
}
