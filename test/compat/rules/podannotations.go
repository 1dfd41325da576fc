package rules

var podAnnotations = Group{Letter: "P", Title: "Annotations of pod templates", Rules: []Rule{}}
