package rules

// packageServer is why cases with PackageManifests do not run with OLM.
const packageServer = "needs OLM's package server, which the tests do not run"

var clients = Group{Letter: "T", Title: "Unmodified clients", Rules: []Rule{
	{ID: "T1", Given: "Argo CD v3.2.0 and kstatus v0.37.2 read the objects of an installed operator", Then: "the Subscription is Healthy, and all objects are Current"},
	{ID: "T2", Given: "Argo CD v3.2.0 reads a Subscription that waits for approval", Then: "Progressing"},
	{ID: "T3", Given: "Argo CD v3.2.0 reads a Subscription whose package does not exist", Then: "Degraded"},
	{ID: "T5", Given: "Argo CD v3.2.0 reads a Subscription whose CatalogSource does not exist", Then: "Degraded"},
	{ID: "T6", Given: "Argo CD v3.2.0 reads a Subscription whose InstallPlan failed", Then: "Degraded"},
	{
		ID: "T7", Given: "Argo CD v3.2.0 reads a Subscription without an installed version, whose bundle image cannot be pulled", Then: "Degraded",
		Difference: "the Job fails minutes later", Reason: "the error of the registry is known at once (decision 20)", Untried: unpackPods,
	},
	{
		ID: "T7-Inline", Given: "as T7, and the bundle in the catalog has two ClusterServiceVersions", Then: "Degraded",
		Difference: "OLM installs the first version", Reason: "no operator may lack a part (decision 39)",
	},
	{
		ID: "T8", Given: "Argo CD v3.2.0 reads a Subscription without an installed version, whose version failed", Then: "Degraded",
		Difference: "Progressing, and Healthy when the state is AtLatestKnown", Reason: "an installed version has succeeded (decision 6)",
	},
	{
		ID: "T9-Bundle", Given: "as T7, and an older version is installed and works", Then: "Progressing, and the state stays AtLatestKnown",
		Difference: "Healthy, because there is no InstallPlan", Reason: "the InstallPlan shows the bundle before it is pulled (decision 20)", Untried: unpackPods,
	},
	{
		ID: "T9-Version", Given: "as T8, and an older version is installed and works", Then: "Progressing",
		Difference: "Progressing, and Healthy when the state is AtLatestKnown", Reason: "an installed version has succeeded (decision 6)",
		Untried: "its result varies with OLM",
	},
	{ID: "T10", Given: "`kubectl wait` v1.37.2 waits for an installation by state, phase and conditions", Then: "each command ends with 0"},
	{ID: "T11", Given: "`kubectl get` v1.37.2 prints CatalogSources, Subscriptions, InstallPlans, ClusterServiceVersions and OperatorGroups", Then: "the columns have OLM's names, and the cells have the values"},
	{ID: "T20", Given: "with v0.6.0, `kubectl operator list` and `kubectl operator catalog list` run", Then: "they print the Subscription and the CatalogSource"},
	{ID: "T21", Given: "with v0.6.0, `kubectl operator upgrade` runs for a package whose update waits for approval", Then: "it approves the InstallPlan and returns when the new version has succeeded"},
	{ID: "T22", Given: "with v0.6.0, `kubectl operator list-operands` runs for an operator with one custom resource", Then: "it prints the custom resource"},
	{ID: "T23", Given: "with v0.6.0, `kubectl operator uninstall --delete-all` runs", Then: "Subscription, ClusterServiceVersion, Operator, custom resources and OperatorGroup are deleted"},
	{ID: "T24", Given: "with v0.6.0, `kubectl operator catalog remove` runs", Then: "the CatalogSource is deleted"},
	{ID: "T25", Given: "with v0.6.0, `kubectl operator list-available` runs for a package, and for a catalog", Then: "it prints the channel and its head", Untried: packageServer},
	{ID: "T26", Given: "with v0.6.0, `kubectl operator describe` runs for a package with two versions", Then: "it prints the name, the head's version, the default channel and the install modes", Untried: packageServer},
	{ID: "T27", Given: "with v0.6.0, `kubectl operator install --version` runs for an older version, with manual approval", Then: "it approves the InstallPlan, and that version is installed", Untried: packageServer},
	{ID: "T28", Given: "as T27, then `kubectl operator upgrade` and `kubectl operator uninstall --delete-all` run", Then: "the newer version is installed, then nothing remains", Untried: packageServer},
	{ID: "T30", Given: "the requests of `operator-sdk run bundle`: a CatalogSource without source type, then its address, a Subscription with startingCSV, approval by update", Then: "the ClusterServiceVersion is Succeeded, and never Failed before"},
	{ID: "T31", Given: "the requests of `operator-sdk run bundle-upgrade`: another address, then approval of an InstallPlan with another name", Then: "the new ClusterServiceVersion is Succeeded"},
	{ID: "T32", Given: "the requests of `operator-sdk cleanup`: Subscription, CustomResourceDefinitions of requirementStatus, ClusterServiceVersion and CatalogSource are deleted", Then: "nothing remains, and nothing is recreated"},
}}
