package rules

const (
	objectExists      = "OLM sets AtLatestKnown and installedCSV when the object of the version exists"
	installedMeansRun = "Health checks read installedCSV as the version that works; wait for the InstallPlan instead (decision 6)."
)

var atLatestKnown = Group{Letter: "M", Title: "The state AtLatestKnown", Rules: []Rule{
	{
		ID: "M1", Given: "the first version is installed, and its pods cannot be scheduled",
		Then:       "currentCSV names it, installedCSV is empty, the state is UpgradePending, and installPlanRef names a complete InstallPlan",
		Difference: objectExists, Reason: installedMeansRun,
	},
	{
		ID: "M2", Given: "a version works, and the pods of its update cannot be scheduled", Then: "installedCSV names the version that works",
		Difference: objectExists, Reason: installedMeansRun,
	},
	{ID: "M3", Given: "the state is AtLatestKnown, and the Deployment fails", Then: "the state stays AtLatestKnown"},
	{
		ID: "M4", Given: "OLM wrote AtLatestKnown for a version that is Failed", Then: "the Subscription is not written",
		Untried: "OLM wrote lastUpdated in some runs",
	},
	{ID: "M4-Installing", Given: "as M4, and the version is Installing", Then: "as M4"},
}}
