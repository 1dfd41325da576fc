package rules

var catalogPods = Group{Letter: "O", Title: "How catalogs run", Rules: []Rule{}}
