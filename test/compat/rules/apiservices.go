package rules

var apiServices = Group{Letter: "L", Title: "APIServices of operators", Rules: []Rule{}}
