package rules

var unknownFields = Group{Letter: "H", Title: "Unknown fields", Rules: []Rule{}}
