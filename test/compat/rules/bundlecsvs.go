package rules

var bundleCSVs = Group{Letter: "G", Title: "ClusterServiceVersions of bundles, and names of InstallPlans", Rules: []Rule{}}
