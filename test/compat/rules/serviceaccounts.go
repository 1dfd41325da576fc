package rules

var serviceAccounts = Group{Letter: "R", Title: "The service account of an OperatorGroup", Rules: []Rule{}}
