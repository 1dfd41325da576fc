package rules

var copiedCSVs = Group{Letter: "K", Title: "Copied ClusterServiceVersions and conflicts of OperatorGroups", Rules: []Rule{}}
