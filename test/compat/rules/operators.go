package rules

var operators = Group{Letter: "Q", Title: "References of an Operator", Rules: []Rule{}}
