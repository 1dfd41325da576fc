package rules

import "time"

var deadlines = Group{Letter: "I", Title: "The deadline of an InstallPlan", Rules: []Rule{
	{
		ID: "I1", Given: "a step fails with an error that a user must fix",
		Then: "the plan fails when the retry timeout has passed since status.startTime, and at most 2 s later",
	},
	{ID: "I1-Default", Given: "I1 with the default retry timeout of 60 s", Then: "as I1"},
	{ID: "I2-1s", Given: "I1 with a retry timeout of 1 s", Then: "as I1"},
	{ID: "I2-5s", Given: "I1 with a retry timeout of 5 s", Then: "as I1"},
	{
		ID: "I2-10m", Given: "I1 with a long retry timeout", Then: "as I1; before that, the plan stays in phase Installing",
		Rest: 10 * time.Minute,
	},
	{
		ID: "I3", Given: "I1",
		Then: "status.message and the message of the condition begin with the error of the last try, without the prefix about retries",
	},
	{
		ID: "I4", Given: "a step fails, is fixed, and then another step begins to fail",
		Then:       "the other step has the whole retry timeout; status.startTime is when it began to fail; the plan fails after at most one retry timeout more than it has steps",
		Difference: "all steps share one retry timeout",
		Reason:     "long plans are not interrupted (decision 39)",
	},
	{ID: "I5", Given: "the cause of I1 is fixed just before the deadline", Then: "the plan becomes Complete and is never Failed"},
	{
		ID: "I6", Given: "the cause of I1 is fixed after the plan failed", Then: "the plan continues and becomes Complete",
		Difference: "the plan stays Failed", Reason: "an administrator need not delete the plan (decision 39)",
	},
	{
		ID: "I7", Given: "the account of the OperatorGroup lacks a permission for longer than the retry timeout",
		Then: "the plan stays in phase Installing, and its message has the refusal", Rest: 10 * time.Minute,
	},
	{
		ID: "I7-Quota", Given: "a quota refuses an object for longer than the retry timeout",
		Then: "the plan stays in phase Installing, and its message has the refusal", Rest: 10 * time.Minute,
	},
	{
		ID: "I7-Webhook", Given: "a webhook denies an object as forbidden for longer than the retry timeout",
		Then: "the plan stays in phase Installing, and its message has the refusal", Rest: 10 * time.Minute,
	},
	{ID: "I8", Given: "the manager is restarted while the retry timeout of I1 passes", Then: "status.startTime stays, and the plan fails as in I1, or at most 2 s after the manager works again"},
	{
		ID: "I9", Given: "the API server is down when the retry timeout of I1 passes",
		Then: "the plan does not fail because of that; status.startTime stays, and the plan fails soon afterwards with the error of its step",
	},
	{
		ID: "I10", Given: "a step whose manifest is of another kind", Then: "the plan fails at once",
		Difference: "the manifest is decoded as the kind of the step, and the plan is Complete with an empty object", Reason: "the object would not be what the manifest states (decision 21)",
	},
	{ID: "I11", Given: "I1 for fifty plans at once", Then: "each plan fails at its own deadline"},
	{
		ID: "I12", Given: "a plan with a ClusterServiceVersion, and a CustomResourceDefinition that lacks a stored version",
		Then:       "the plan fails with the risk of data loss, and the ClusterServiceVersion is not created; the message states that, too",
		Difference: "the ClusterServiceVersion is created before the definition is checked",
		Reason:     "the version before continues (decision 21)",
	},
}}
