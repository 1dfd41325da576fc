package rules

var apiServices = Group{Letter: "L", Title: "APIServices of operators", Rules: []Rule{
	{
		ID: "L1", Given: "a version owns an API, and the six objects with names of the oldest releases, which serve it, have its owner labels",
		Then:    "the APIService stays, and names the new Service before the old one is deleted; requests are answered all the time; the version succeeds, within 10 s the six objects are deleted, and those with the present names exist",
		Untried: "OLM deletes the APIService before the case creates its owner",
	},
	{ID: "L2", Given: "the six objects have no labels", Then: "they are not written, and the version succeeds"},
	{ID: "L3", Given: "the six objects have the labels of another version that exists", Then: "as L2"},
	{ID: "L4", Given: "the six objects have the labels of a version that does not exist", Then: "as L2"},
	{ID: "L5", Given: "only one of the six objects exists for each API", Then: "it is deleted, and the absence of the others is no error"},
	{ID: "L6", Given: "the former and the present name of the Service are equal", Then: "the Service stays, and selects the pods of the version"},
	{
		ID: "L7", Given: "the deletion of one of the six objects is forbidden",
		Then:       "the version succeeds, the other five objects are deleted, and a Warning FormerObjectKept names the object",
		Difference: "the installation fails, and the objects after that one stay", Reason: "Nothing depends on the deletion of an object with a former name (decision 39).",
	},
	{ID: "L8", Given: "the six objects appear for a version that is installed", Then: "they stay until the version is installed again"},
	{ID: "L8-Reinstall", Given: "the objects appear for a version that is then installed again", Then: "they are deleted"},
	{ID: "L9", Given: "the labels of an APIService name a namespace that does not exist", Then: "the APIService is deleted within 30 s"},
	{ID: "L10", Given: "the labels of an APIService name a version that does not exist in a namespace that does", Then: "the APIService is deleted within 30 s"},
	{ID: "L11", Given: "an existing APIService gets such labels", Then: "it is deleted within 30 s"},
	{ID: "L12", Given: "an APIService lacks one of the three labels, or they name another kind", Then: "it stays"},
	{ID: "L13", Given: "the labels of an APIService name a version that exists", Then: "it stays"},
	{ID: "L14", Given: "a version with an API is deleted and created again within 5 s", Then: "its APIService exists again, and requests are answered at most 5 s after the Deployment is available"},
	{
		ID: "L15", Given: "the labels of an APIService name a copied version",
		Then: "the APIService is deleted within 30 s",
	},
	{ID: "L16", Given: "such an APIService was created while no manager ran", Then: "it is deleted within 30 s"},
	{ID: "L17", Given: "a version is created, and at once an APIService with its labels", Then: "the APIService stays"},
	{
		ID: "L18", Given: "two namespaces have the same operator with a webhook", Then: "each has a binding to system:auth-delegator with its own subject",
		Difference: "the namespaces share one binding, which names the last subject", Reason: "Each operator needs its permission (decision 39).",
	},
	{
		ID: "L19", Given: "a version with a webhook is deleted", Then: "all its objects are deleted, including the binding in kube-system",
		Difference: "the binding in kube-system stays, and no name contains the namespace", Reason: "Nothing else deletes it (decision 39).",
	},
	{ID: "L19-API", Given: "a version with an API is deleted", Then: "its APIService, Service, Secret, Role and RoleBinding are deleted"},
	{
		ID: "L20", Given: "the APIService of a new version is available, and its server does not list the kind",
		Then: "the version stays Installing with the message `apiServices not installed`; it succeeds when the kind is listed",
	},
	{
		ID: "L-OtherOwner", Given: "the labels of an APIService name another version that exists",
		Then: "a version that owns the API is Failed with the reason OwnerConflict",
	},
	{
		ID: "L-Predecessor", Given: "the labels of an APIService name the version that the new one replaces",
		Then: "the new version takes the APIService over",
	},
}}
