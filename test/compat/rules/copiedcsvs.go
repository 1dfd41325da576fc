package rules

var copiedCSVs = Group{Letter: "K", Title: "Copied ClusterServiceVersions and conflicts of OperatorGroups", Rules: []Rule{
	{
		ID: "K1", Given: "two OperatorGroups share a target, and a version in the second provides an API of one in the first",
		Then: "its first phase is Failed with exactly OLM's message; it has no other Event, and it never has a copy",
	},
	{
		ID: "K2", Given: "the first OperatorGroup loses the shared target",
		Then: "the second version is Pending with OLM's message, and succeeds within 30 s; it has a copy in its target",
	},
	{
		ID: "K3", Given: "both versions run, and the second OperatorGroup gains a shared target",
		Then:       "the version of the younger OperatorGroup is Failed; its copies and their roles are deleted within 10 s; the copy of the first stays",
		Difference: "the version of either OperatorGroup may fail", Reason: "A group that widens its targets must not stop an operator of an older one (decisions 24 and 39).",
		Untried: "its result varies with OLM",
	},
	{
		ID: "K4", Given: "a version provides an API that its OperatorGroup with static APIs lacks",
		Then: "its first phase is Failed; it has no copy and no Deployment",
	},
	{
		ID: "K4-Copied", Given: "a version has a copy and copied roles, and its OperatorGroup then has static APIs without that of the version",
		Then:       "the version is Failed, and the copy and the copied roles are deleted",
		Difference: "the copy stays", Reason: "A copy must not offer an operator that does not run (decision 25).",
	},
	{ID: "K5", Given: "there is a copy of a version that is Failed because of a conflict", Then: "the copy is deleted within 30 s"},
	{
		ID: "K5-Start", Given: "such a copy was created while no manager ran, and the manager then starts",
		Then: "the copy is deleted within 30 s",
	},
	{
		ID: "K5-Plan", Given: "there is such a copy, and an InstallPlan in its namespace has a version of the same name",
		Then:       "the InstallPlan is Complete, and the version succeeds",
		Difference: "the InstallPlan is Complete while the copy exists, and the version is not created within a minute",
		Reason:     "A copy must not prevent an installation (decision 25).",
		Untried:    "the case passes or fails depending on the order of OLM's events",
	},
	{
		ID: "K7", Given: "a version is created, and the status of its OperatorGroup is written 5 s later",
		Then:       "the version has no phase or is Pending, and has no copy, until then; it then succeeds and has a copy",
		Difference: "OLM does not repeat a refused write of the status; the version has a copy at once and stays InstallReady",
		Reason:     "a refused write is repeated, and the version waits for it (decision 39)",
	},
	{ID: "K8", Given: "a version does not support the install mode of its OperatorGroup", Then: "its first phase is Failed, and it has no copy"},
	{ID: "K9-None", Given: "the namespace of a version has no OperatorGroup", Then: "its first phase is Failed, and it has no copy"},
	{ID: "K9-Two", Given: "the namespace of a version has two OperatorGroups", Then: "its first phase is Failed, and it has no copy"},
	{ID: "K10", Given: "the second version of a conflict is deleted, and has a copy in the shared target", Then: "nothing of it is left there"},
	{
		ID: "K11", Given: "copies are disabled, and a version for all namespaces loses a conflict",
		Then: "the version that runs has a copy in the protected namespace only; the other one has none there",
	},
	{ID: "K12", Given: "a version without a conflict is created", Then: "its first condition is Pending, with the message that requirements are not yet checked"},
}}
