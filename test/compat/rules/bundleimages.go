package rules

var bundleImages = Group{Letter: "N", Title: "Bundle images that cannot be pulled", Rules: []Rule{}}
