package rules

const (
	unpackJobs    = "OLM unpacks bundle images with Jobs"
	unpackProcess = "The supervisor pulls images itself, and reports the answer of the registry at once (decision 20)."
)

var bundleImages = Group{Letter: "N", Title: "Bundle images that cannot be pulled", Rules: untried(unpackPods, []Rule{
	{
		ID: "N1", Given: "a version works, and the image of its update does not exist",
		Then:       "currentCSV and installedCSV never name the update; within 10 s BundleUnpackFailed begins with the reason NotFound, and BundleUnpacking is absent",
		Difference: unpackJobs, Reason: unpackProcess,
	},
	{
		ID: "N1-Message", Given: "a version works, and the image of its update does not exist",
		Then:       "the message of BundleUnpackFailed names the image",
		Difference: unpackJobs, Reason: unpackProcess,
	},
	{
		ID: "N2", Given: "the catalog then offers another update, whose image exists", Then: "currentCSV names it without the former one, and the condition is removed",
		Difference: unpackJobs, Reason: unpackProcess,
	},
	{
		ID: "N2-Withdrawn", Given: "the catalog no longer offers the update whose image does not exist",
		Then:       "the condition is removed, the state is AtLatestKnown, and currentCSV never named the update",
		Difference: unpackJobs, Reason: unpackProcess,
	},
	{ID: "N3", Given: "the missing image is pushed", Then: "currentCSV names the update", Difference: unpackJobs, Reason: unpackProcess},
	{
		ID: "N4", Given: "nothing is installed, and the image does not exist", Then: "currentCSV is empty, and no version exists",
		Difference: unpackJobs, Reason: unpackProcess,
	},
	{
		ID: "N4-Pushed", Given: "the missing image of a first version is pushed",
		Then:       "the version is installed",
		Difference: unpackJobs, Reason: unpackProcess,
	},
	{
		ID: "N5", Given: "the registry sends the image 20 s late", Then: "BundleUnpacking is True until the image is complete; within 20 s of that, currentCSV names the update",
		Difference: unpackJobs, Reason: unpackProcess,
	},
	{
		ID: "N6", Given: "the registry does not answer, and the OperatorGroup limits the time to 5 s", Then: "within 10 s the message contains DeadlineExceeded",
		Difference: unpackJobs, Reason: unpackProcess,
	},
	{
		ID: "N6-First", Given: "nothing is installed, and the registry does not answer within the time limit of the OperatorGroup",
		Then:       "the message contains DeadlineExceeded, and currentCSV is empty",
		Difference: unpackJobs, Reason: unpackProcess,
	},
	{
		ID: "N7", Given: "two Subscriptions are resolved together, and one image does not exist", Then: "currentCSV of neither changes",
		Difference: unpackJobs, Reason: unpackProcess,
	},
	{
		ID: "N7-Apart", Given: "the image of an update does not exist, and another Subscription depends on nothing",
		Then:       "the other Subscription installs its version",
		Difference: unpackJobs, Reason: unpackProcess,
	},
	{
		ID: "N8", Given: "the image of an update is no bundle", Then: "the reason is ErrorPreventedUnpacking, and currentCSV does not change",
		Difference: unpackJobs, Reason: unpackProcess,
	},
	{
		ID: "N8-First", Given: "nothing is installed, and the image is no bundle",
		Then:       "the reason is ErrorPreventedUnpacking, and currentCSV is empty",
		Difference: unpackJobs, Reason: unpackProcess,
	},
	{
		ID: "N9", Given: "approval is manual, and the image of an update does not exist", Then: "no InstallPlan for it asks for approval until the image exists",
		Difference: unpackJobs, Reason: unpackProcess,
	},
	{
		ID: "N10", Given: "the manager restarts while the image of an update does not exist", Then: "currentCSV and installedCSV never name the update",
		Difference: unpackJobs, Reason: unpackProcess,
	},
	{
		ID: "N11", Given: "currentCSV names an update whose image does not exist", Then: "one write makes currentCSV name the installed version again",
		Difference: unpackJobs, Reason: unpackProcess,
	},
})}
