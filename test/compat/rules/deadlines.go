package rules

var deadlines = Group{Letter: "I", Title: "The deadline of an InstallPlan", Rules: []Rule{}}
