package rules

var operatorConditions = Group{Letter: "J", Title: "OperatorConditions", Rules: []Rule{}}
