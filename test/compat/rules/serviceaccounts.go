package rules

var serviceAccounts = Group{Letter: "R", Title: "The service account of an OperatorGroup", Rules: []Rule{
	{ID: "R1", Given: "a version failed because the account may not create its Deployment, and spec.serviceAccountName is removed", Then: "the version leaves Failed within 2 s, and succeeds"},
	{ID: "R2", Given: "such a version failed, and an account with the permission is named", Then: "the version leaves Failed within 2 s, and succeeds"},
	{ID: "R3-Role", Given: "such a version failed, and a Role with the permission is bound to the account", Then: "the version leaves Failed within 2 s, and succeeds"},
	{ID: "R3-ClusterRole", Given: "such a version failed, and a bound ClusterRole gets the permission", Then: "the version leaves Failed within 2 s, and succeeds"},
	{ID: "R3-Binding", Given: "such a version failed, and a ClusterRole with the permission is bound to the account", Then: "the version leaves Failed within 2 s, and succeeds"},
	{ID: "R4", Given: "such a version failed, and the account is recreated", Then: "the installation is repeated within 2 s"},
	{
		ID: "R5", Given: "spec.serviceAccountName names another account, and the status of the OperatorGroup is written 5 s later",
		Then:       "after that, nothing is done with the permissions of the former account",
		Difference: "OLM does not repeat a refused write of the status, which names the former account", Reason: "a refused write is repeated (decision 39)",
	},
	{
		ID: "R6", Given: "an InstallPlan waits because the account lacks a permission, and spec.serviceAccountName is removed",
		Then:       "within 2 s the InstallPlan completes, and status.attenuatedServiceAccountRef is removed",
		Difference: "OLM's InstallPlan keeps the account, and waits", Reason: "The OperatorGroup no longer limits the InstallPlan (decision 39).",
	},
	{
		ID: "R7", Given: "ten versions run, 40 of the namespace failed as in R1, and spec.serviceAccountName is removed",
		Then:       "the failed versions succeed, and the status of no other one is written",
		Difference: "versions that OLM repeats before its cache has the change stay Failed", Reason: "Each of them may be installed now (decision 39).",
		Untried: "the case passes or fails depending on the order of OLM's events",
	},
	{
		ID: "R8", Given: "such a version failed; the OperatorGroup gets an annotation, and an unrelated ClusterRole is created", Then: "the version is not written",
		Difference: "OLM repeats the installation when any ClusterRole changes", Reason: "Without a new permission, the installation fails again (decision 39).",
	},
	{ID: "R9", Given: "a version failed for another reason, and spec.serviceAccountName is removed", Then: "the version stays Failed"},
}}
