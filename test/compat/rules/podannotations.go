package rules

import "time"

var podAnnotations = Group{Letter: "P", Title: "Annotations of pod templates", Rules: []Rule{
	{
		ID: "P1", Given: "a ClusterServiceVersion and its pod template have annotations; one key has two values",
		Then: "the pods have all of them and those of the OperatorGroup; the value of the ClusterServiceVersion takes precedence",
	},
	{
		ID: "P2", Given: "a Subscription configures annotations, and the version has one of the keys",
		Then: "the Deployment has all configured annotations; its pods get only those for which the version and its template have no value",
	},
	{
		ID: "P3", Given: "a running ClusterServiceVersion gets an annotation",
		Then: "its Deployment is rolled out once, and the pods have the annotation; the phases InstallReady, Installing and Succeeded follow",
	},
	{ID: "P4", Given: "a running ClusterServiceVersion loses an annotation", Then: "its Deployment is rolled out once, and the pods lack the annotation"},
	{
		ID: "P5", Given: "a running ClusterServiceVersion gets an annotation that begins with chandlery.dev/, or kubectl's copy of the applied object",
		Then:       "the Deployment is not written",
		Difference: "OLM rolls the Deployment out", Reason: "These annotations change while the operator stays the same (decision 23).",
	},
	{
		ID: "P6", Given: "a Deployment as earlier releases of Chandlery created it: with few annotations on its pods",
		Then:       "the Deployment is not written",
		Difference: "OLM has no such release, and rolls the Deployment out", Reason: "An update of the supervisor must not restart operators (decision 23).",
		Rest: time.Hour,
	},
	{
		ID: "P6-Restart", Given: "ten such Deployments; the manager is restarted, and then another one takes the lead",
		Then:       "no Deployment is written, and their pods stay",
		Difference: "OLM has no such release, and rolls the Deployments out", Reason: "An update of the supervisor must not restart operators (decision 23).",
	},
	{
		ID: "P7", Given: "the settings of a Subscription change for such a Deployment",
		Then: "the Deployment is rolled out once, with all annotations of the version",
	},
	{
		ID: "P8", Given: "a Deployment as OLM creates it: with all annotations of the version on its pods",
		Then: "the Deployment is not written, and its hash label stays",
	},
	{
		ID: "P8-Restart", Given: "ten such Deployments; the manager is restarted, and then another one takes the lead",
		Then: "no Deployment is written, and their pods stay",
	},
	{
		ID: "P9", Given: "a ClusterServiceVersion is installed",
		Then: "the label olm.deployment-spec-hash is the hash that OLM computes, so OLM does not roll the Deployment out after a handback",
	},
	{ID: "P10", Given: "a user has changed the pod template of a Deployment that OLM created", Then: "the Deployment is not written"},
	{
		ID: "P10-Restart", Given: "P10; the manager is restarted, and then another one takes the lead",
		Then: "the Deployment is not written, and its pods stay",
	},
	{
		ID: "P11", Given: "the annotations of a version and its pod template exceed 256 KiB together, because of alm-examples",
		Then:       "the version succeeds, its pods lack alm-examples, and an Event warns",
		Difference: "OLM's installation fails", Reason: "The operator does not need its examples (decision 23).",
	},
	{ID: "P12", Given: "the targets of the OperatorGroup change", Then: "the Deployment is rolled out once, and its pods have the new targets"},
	{ID: "P13", Given: "the certificate of a webhook is renewed, because its Secret was deleted", Then: "the annotation olmcahash of the pods changes"},
	{ID: "P14", Given: "a ClusterServiceVersion with a copy gets an annotation", Then: "there is no Deployment in the namespace of the copy"},
	{ID: "P15", Given: "a version with an annotation is replaced by one without", Then: "the pods lack the annotation"},
}}
