package rules

var atLatestKnown = Group{Letter: "M", Title: "The state AtLatestKnown", Rules: []Rule{}}
