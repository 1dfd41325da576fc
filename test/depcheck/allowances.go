package depcheck

// Allowance lets a type exceed the limits.
type Allowance struct {
	Size

	// Reason is the reason for the exception.
	Reason string
}

// Allowances returns the types that may exceed the limits.
func Allowances() map[string]Allowance {
	const steps = "the steps and checks that the tests of the suite share"

	return map[string]Allowance{
		"bench/registry.options":                                        {Size{1, 14}, "one field for each flag"},
		"bench/resolver.figures":                                        {Size{9, 15}, "one field for each measured value"},
		"bundles.CSVMetadata":                                           {Size{0, 14}, "the fields of olm.csv.metadata"},
		"bundles.EncodedCSVMetadata":                                    {Size{2, 14}, "the fields of olm.csv.metadata"},
		"bundles/index.Summary":                                         {Size{1, 13}, "the fields of a bundle as a list prints it"},
		"bundles/index.csvSpec":                                         {Size{0, 17}, "the fields of the spec of a ClusterServiceVersion"},
		"cmd/internal/command/discover.reportedAPI":                     {Size{0, 15}, "the columns of a table"},
		"cmd/internal/command/history/timeline.Timeline":                {Size{13, 15}, "the fields of the JSON output"},
		"cmd/internal/command/status.Catalog":                           {Size{2, 13}, "the fields of the JSON output"},
		"cmd/internal/command/status.Subscription":                      {Size{1, 14}, "the fields of the JSON output"},
		"cmd/internal/command/uninstall/suite_test.cluster":             {Size{17, 6}, steps},
		"cmd/registry.serveOptions":                                     {Size{7, 14}, "one field for each group of flags"},
		"server.Config":                                                 {Size{1, 15}, "one field for each setting"},
		"server.metrics":                                                {Size{5, 19}, "one field for each metric"},
		"supervisor.Options":                                            {Size{2, 26}, "one field for each flag"},
		"supervisor/controllers/catalogsource/suite_test.world":         {Size{20, 1}, steps},
		"supervisor/controllers/clusterserviceversion/suite_test.world": {Size{55, 4}, steps},
		"supervisor/controllers/installplan/suite_test.world":           {Size{41, 9}, steps},
		"supervisor/controllers/packagemanifest/manifest.Description":   {Size{0, 16}, "the fields of currentCSVDesc of a PackageManifest"},
		"supervisor/controllers/packagemanifest/suite_test.world":       {Size{21, 5}, steps},
		"supervisor/controllers/subscription/suite_test.world":          {Size{30, 5}, steps},
		"supervisor/discovery/suite_test.world":                         {Size{19, 2}, steps},
		"supervisor/explain.ClusterState":                               {Size{1, 20}, "one field for each kind that is read"},
		"test/compat_test.bundleFixture":                                {Size{17, 1}, steps},
		"test/e2e/cleanup_test.bed":                                     {Size{22, 6}, steps},
		"test/e2e/explain_test.situation":                               {Size{19, 3}, steps},
		"test/e2e/takeover_test.olmScene":                               {Size{19, 6}, steps},
		"test/e2e/takeover_test.scene":                                  {Size{25, 4}, steps},
	}
}
