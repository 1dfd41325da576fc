package rules

import "time"

var operatorConditions = Group{Letter: "J", Title: "OperatorConditions", Rules: []Rule{
	{ID: "J1", Given: "there is no report about upgrades", Then: "the upgrade continues"},
	{ID: "J2", Given: "the status reports Upgradeable True for the current generation", Then: "the upgrade continues"},
	{ID: "J3", Given: "the status reports Upgradeable False for the current generation", Then: "the new version is Pending with the message of the report"},
	{
		ID: "J3-Current", Given: "a report of False blocks an upgrade", Then: "the running version stays Succeeded, and is not written",
		Difference: "the running version is Replacing", Reason: "It runs, and the supervisor still repairs it (decision 23).",
	},
	{ID: "J4", Given: "the status reports Upgradeable True for an earlier generation", Then: "the new version is Pending, because the report True is outdated"},
	{ID: "J5", Given: "the status reports Upgradeable True for a later generation", Then: "the new version is Pending, because the report True is outdated"},
	{ID: "J6", Given: "the status reports Upgradeable True without a generation", Then: "the new version is Pending, because the report True is outdated"},
	{ID: "J7", Given: "the status reports Upgradeable False for an earlier generation", Then: "the new version is Pending, because the report False is outdated"},
	{ID: "J8", Given: "an outdated report blocks an upgrade, and the operator reports for the current generation", Then: "the upgrade continues within 5 s"},
	{ID: "J9-False", Given: "a report of False blocks an upgrade, and spec.overrides gets True", Then: "the upgrade continues"},
	{ID: "J9-Earlier", Given: "a report for an earlier generation blocks an upgrade, and spec.overrides gets True", Then: "the upgrade continues"},
	{ID: "J9-Later", Given: "a report for a later generation blocks an upgrade, and spec.overrides gets True", Then: "the upgrade continues"},
	{ID: "J9-None", Given: "a report without a generation blocks an upgrade, and spec.overrides gets True", Then: "the upgrade continues"},
	{ID: "J9-FalseEarlier", Given: "a report of False for an earlier generation blocks an upgrade, and spec.overrides gets True", Then: "the upgrade continues"},
	{ID: "J10-False", Given: "the report is True, and spec.overrides has False", Then: "the new version is Pending with the message of the override"},
	{ID: "J10-Unknown", Given: "the report is True, and spec.overrides has Unknown", Then: "the new version is Pending with the message of the override"},
	{ID: "J11", Given: "spec.conditions has Upgradeable True", Then: "within 2 s, the status shows it for the current generation; the upgrade continues"},
	{ID: "J12", Given: "spec.conditions has True, and the status an older report of False", Then: "the status shows True, and the upgrade continues"},
	{ID: "J13", Given: "a report blocks an upgrade, and spec.overrides gets another type", Then: "the new version stays Pending"},
	{ID: "J14", Given: "an outdated report blocks an upgrade, and the OperatorCondition gets an annotation", Then: "nothing else is written"},
	{ID: "J15", Given: "a report blocks an upgrade", Then: "the generation of the OperatorCondition stays"},
	{ID: "J15-Accounts", Given: "a report blocks an upgrade to a version with another ServiceAccount", Then: "the generation of the OperatorCondition stays"},
	{ID: "J15-Restart", Given: "a report blocks an upgrade, and the manager is restarted", Then: "the generation of the OperatorCondition stays, and the upgrade stays blocked"},
	{
		ID: "J16", Given: "an outdated report blocks the upgrade of a Subscription", Then: "nothing is written, and NewerVersionHeld contains the message of the new version",
		Difference: "OLM has no such condition", Reason: "The Subscription shows why its update waits (decision 39).", Rest: 10 * time.Minute,
	},
	{
		ID: "J17", Given: "spec.conditions had Upgradeable False, and the operator removes it", Then: "within 2 s, the status shows no such condition; the upgrade continues",
		Difference: "OLM keeps the condition, which blocks the upgrade", Reason: "An operator can withdraw its report (decision 26).",
	},
}}
