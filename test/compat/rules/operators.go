package rules

var operators = Group{Letter: "Q", Title: "References of an Operator", Rules: []Rule{
	{ID: "Q1", Given: "five objects get the label of an operator within a second", Then: "status.components.refs has all of them 2 s later"},
	{ID: "Q2", Given: "these objects are deleted", Then: "status.components.refs has none of them 2 s later"},
	{ID: "Q3", Given: "an operator has components of several kinds", Then: "status.components.refs is sorted by kind, namespace and name"},
	{ID: "Q4", Given: "an object has the label for longer than 2 s", Then: "a written status has its reference"},
	{
		ID: "Q5", Given: "the last component is deleted", Then: "the Operator is deleted",
		Difference: "OLM never deletes Operators", Reason: "An Operator without components is a leftover (decision 26).",
	},
}}
