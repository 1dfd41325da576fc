package rules

var configMapCatalogs = Group{Letter: "C", Title: "ConfigMap catalogs", Rules: []Rule{}}
