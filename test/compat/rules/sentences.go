package rules

var sentences = Group{Letter: "F", Title: "Exact sentences", Rules: []Rule{}}
