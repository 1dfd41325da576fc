package rules

var steps = Group{Letter: "B", Title: "Steps of InstallPlans that others create", Rules: []Rule{}}
