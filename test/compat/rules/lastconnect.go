package rules

var lastConnect = Group{Letter: "A", Title: "The time lastConnect of a CatalogSource", Rules: []Rule{
	{
		ID: "A13", Given: "a catalog by address is READY; its server stops, and starts again",
		Then: "the state leaves READY within 15 s; within 15 s after the start it is READY with a later lastConnect",
	},
}}
