package rules

var bundleCSVs = Group{Letter: "G", Title: "ClusterServiceVersions of bundles, and names of InstallPlans", Rules: []Rule{
	{
		ID: "G1", Given: "an inline bundle whose ClusterServiceVersion has apiVersion v1alpha1",
		Then:       "within 60 s it is installed, and the step has the group operators.coreos.com",
		Difference: "the group of the step is empty", Reason: "the step names the object that is created (decision 39)",
	},
	{ID: "G2", Given: "G1 in a bundle image", Then: "it is installed", Untried: unpackPods},
	{
		ID: "G3", Given: "an inline bundle whose ClusterServiceVersion has apiVersion operators.coreos.com/v1alpha2",
		Then:       "it is installed, and an Event of the plan warns",
		Difference: "no warning", Reason: "the author learns of it (decision 39)",
	},
	{
		ID: "G4", Given: "a bundle image whose ClusterServiceVersion lacks apiVersion",
		Then:    "BundleUnpackFailed is True with reason ErrorPreventedUnpacking, and says what is missing of which; there is no plan",
		Untried: unpackPods,
	},
	{
		ID: "G5", Given: "a bundle image whose ClusterServiceVersion lacks kind",
		Then:    "BundleUnpackFailed is True with reason ErrorPreventedUnpacking, and says what is missing of which; there is no plan",
		Untried: unpackPods,
	},
	{
		ID: "G6", Given: "an inline bundle whose ClusterServiceVersion lacks apiVersion",
		Then: "ResolutionFailed is True with reason ErrorPreventedResolution, and says what is missing of which; there is no plan",
	},
	{
		ID: "G7", Given: "a bundle with two ClusterServiceVersions", Then: "it is not installed, the message names both, and there is no plan",
		Difference: "the first one is installed", Reason: "no operator may lack a part (decision 39)",
	},
	{
		ID: "G8", Given: "a ClusterServiceVersion with a status and with metadata of another cluster",
		Then:       "it is installed",
		Difference: "the plan fails, because the API server refuses the resource version", Reason: "metadata of another cluster has no meaning (decision 39)",
	},
	{
		ID: "G9-Refused", Given: "a bundle with an object of an unknown kind without apiVersion",
		Then:       "BundleUnpackFailed names the kind, the object and the missing field; there is no plan",
		Difference: "the InstallPlan fails with the message `the InstallPlan contains invalid data`", Reason: "The author learns what to correct (decision 39).",
	},
	{ID: "G9", Given: "a bundle with a Role of apiVersion v1, and a ConfigMap without apiVersion", Then: "it is installed"},
	{
		ID: "G10", Given: "an InstallPlan that waits for approval is deleted",
		Then: "within 10 s the Subscription refers to one other plan, which has another name and waits for approval",
	},
	{ID: "G10-Stopped", Given: "G10, and no manager runs when the plan is deleted", Then: "as G10 when a manager runs again"},
	{
		ID: "G11", Given: "G10, and the approval of the Subscription becomes Automatic at the same time",
		Then: "one other plan with another name is carried out",
	},
	{ID: "G12", Given: "G10, three times", Then: "all names differ, and one plan is left"},
	{
		ID: "G13", Given: "a plan that failed is deleted", Then: "a plan with another name is tried from the start",
		Difference: noOtherPlan, Reason: anotherPlan,
	},
	{
		ID: "G14", Given: "a plan in phase Installing is deleted", Then: "a plan with another name continues",
		Difference: noOtherPlan, Reason: anotherPlan,
	},
	{
		ID: "G15", Given: "a Complete plan is deleted", Then: "the Subscription has InstallPlanMissing, and no other plan is created",
	},
	{
		ID: "G16", Given: "a plan waits for approval; the Subscription changes to a channel with another head",
		Then:       "the plan is deleted, and another one with another name waits",
		Difference: "the plan stays, and the Subscription refers to it", Reason: "only one plan can be approved (decision 4)",
	},
	{
		ID: "G17", Given: "G16, and back to the first channel", Then: "the third plan has a name of its own, and installs the first version",
		Difference: "the first plan stays, and the Subscription refers to it", Reason: "only one plan can be approved (decision 4)",
	},
	{
		ID: "G18", Given: "the manager ends after it has created a plan and before it has written the plan's status",
		Then:       "the next manager fills the same plan and creates no other one",
		Difference: "each attempt creates another plan, and the empty ones stay", Reason: "an empty plan is never completed (decision 39)",
	},
}}

const (
	noOtherPlan = "no other plan follows within a minute"
	anotherPlan = "parts of the version may be missing (decision 4)"
)

// unpackPods is why cases with bundle images do not run with OLM.
const unpackPods = "needs pods that unpack bundle images"
