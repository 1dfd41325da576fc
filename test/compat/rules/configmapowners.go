package rules

var configMapOwners = Group{Letter: "D", Title: "The ConfigMap of a CatalogSource", Rules: []Rule{}}
