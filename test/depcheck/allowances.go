package depcheck

// Allowance lets a type exceed the limits.
type Allowance struct {
	Size

	// Reason is the reason for the exception.
	Reason string
}

// Allowances returns the types that may exceed the limits.
func Allowances() map[string]Allowance {
	return map[string]Allowance{
		"bench/registry.options":                                      {Size{1, 14}, "one field for each flag"},
		"bench/resolver.figures":                                      {Size{9, 15}, "one field for each measured value"},
		"bundles.CSVMetadata":                                         {Size{0, 14}, "the fields of olm.csv.metadata"},
		"bundles.EncodedCSVMetadata":                                  {Size{2, 14}, "the fields of olm.csv.metadata"},
		"bundles/index.Summary":                                       {Size{1, 13}, "the fields of a bundle as a list prints it"},
		"cmd/internal/command/discover.reportedAPI":                   {Size{0, 15}, "the columns of a table"},
		"cmd/internal/command/history/timeline.Timeline":              {Size{13, 15}, "the fields of the JSON output"},
		"cmd/internal/command/status.Catalog":                         {Size{2, 13}, "the fields of the JSON output"},
		"cmd/internal/command/status.Subscription":                    {Size{1, 14}, "the fields of the JSON output"},
		"cmd/registry.serveOptions":                                   {Size{7, 14}, "one field for each group of flags"},
		"server.Config":                                               {Size{1, 15}, "one field for each setting"},
		"server.metrics":                                              {Size{4, 19}, "one field for each metric"},
		"supervisor.Options":                                          {Size{2, 25}, "one field for each flag"},
		"supervisor/controllers/packagemanifest/manifest.Description": {Size{0, 16}, "the fields of currentCSVDesc of a PackageManifest"},
		"supervisor/explain.ClusterState":                             {Size{1, 20}, "one field for each kind that is read"},
	}
}
