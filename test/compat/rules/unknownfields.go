package rules

import (
	"fmt"
	"time"
)

var unknownFields = Group{Letter: "H", Title: "Unknown fields", Rules: append(unknownFieldsByKind(), []Rule{
	{
		ID: "H1-Metric", Given: "an object has two unknown fields",
		Then:       "the metric chandlery_installplan_dropped_fields_total of its kind rises by 2",
		Difference: "OLM has no such metric", Reason: alwaysReported, Untried: olmMetrics,
	},
	{ID: "H8", Given: "a CustomResourceDefinition with a known extension key in its schema", Then: "it is stored, without a warning"},
	{
		ID: "H9", Given: "an object of a CustomResourceDefinition has a field that the schema lacks",
		Then: "the bundle is installed without the field, and an Event names the path",
	},
	{ID: "H10", Given: "H9, and the schema preserves unknown fields", Then: "the field is stored, without a warning"},
	{
		ID: "H11", Given: "H9, and the schema preserves unknown fields below one field only",
		Then: "one field is stored and the other is not; an Event names the path of that one",
	},
	{
		ID: "H12", Given: "H9, and the bundle itself brings the CustomResourceDefinition",
		Then: "the bundle is installed without the field, and an Event names the path",
	},
	{
		ID: "H13", Given: "H9, and the CustomResourceDefinition then gets the field",
		Then: "the object is not written; the next version of the bundle brings the field",
	},
	{ID: "H14", Given: "a known field with a value of another type", Then: "the plan fails at its deadline with the words of the API server"},
	dropped("H15", "the name of a field differs in case", "the field is not stored, and an Event names its path and the correct name"),
	{ID: "H16", Given: "optional fields with the value null", Then: "the bundle is installed without the fields and without a warning"},
	{ID: "H16-Required", Given: "a required field with the value null", Then: "the plan fails at its deadline with the words of the API server"},
	{ID: "H16-List", Given: "a list with the value null", Then: "the bundle is installed with an empty list and without a warning"},
	{
		ID: "H17", Given: "a mapping in the manifest of a bundle image repeats a key", Then: "the last value counts, and an Event warns",
		Difference: silentlyDropped, Reason: alwaysReported, Untried: unpackPods,
	},
	{
		ID: "H18", Given: "a mapping in an inline manifest repeats a key", Then: "the last value counts, and an Event warns",
		Difference: silentlyDropped, Reason: alwaysReported,
	},
	{ID: "H19-env", Given: "a container of the ClusterServiceVersion has an environment variable twice", Then: "it is installed, and the later value counts", Difference: refusesDuplicates, Reason: laterCounts},
	{ID: "H19-port", Given: "a container of the ClusterServiceVersion has a port twice", Then: "it is installed", Difference: refusesDuplicates, Reason: laterCounts},
	{ID: "H19-mount", Given: "a container of the ClusterServiceVersion has a mount path twice", Then: "the plan fails at its deadline with the words of the API server"},
	dropped("H20", "a container of the ClusterServiceVersion has an unknown field", "it is installed, and an Event names the path"),
	dropped("H21", "a Deployment of the ClusterServiceVersion has a field that is newer than the API server",
		"the Deployment is created without it and is not written again, and an Event of the ClusterServiceVersion names the path"),
	{
		ID: "H22", Given: "manifests that were exported from a cluster, with their metadata and status",
		Then:       "the bundle is installed without a warning",
		Difference: "the plan fails, because the API server refuses the resource version", Reason: "metadata of another cluster has no meaning (decision 39)",
	},
	{ID: "H23", Given: "manifests with an empty status and a creation time of null", Then: "the bundle is installed without a warning"},
	{
		ID: "H24", Given: "a version has a known and an unknown field; the next version has neither",
		Then: "after the update, the object has neither",
	},
	dropped("H25", "an object of kubectl exists with a field of its own; a bundle brings it with an unknown field",
		"the object has the content of the bundle and keeps its own field; an Event names the unknown one"),
	resting(dropped("H26", "a bundle with an unknown field is installed, and nothing happens", "its object is not written, and there is one Event"), 15*time.Minute),
	dropped("H26-Restart", "as H26; then the manager is restarted, and then another one takes the lead", "its object is not written, and there is one Event"),
	{
		ID: "H27", Given: "H9, and the OperatorGroup names an account that may get, create and update the kind",
		Then: "the bundle is installed, and an Event names the path",
	},
	dropped("H28", "a plan is refused for another reason", "an Event names the unknown field, and nothing is applied"),
	{
		ID: "H29", Given: "a plan with an unknown field waits for approval", Then: "'supervisor approve --dry-run' names the field, and approves nothing",
		Difference: "OLM has no such command", Reason: "a user sees it before the installation (decision 39)", Untried: ownCommand,
	},
	dropped("H30", "an object has 200 unknown fields", "the bundle is installed, and one Event counts them, names ten, and states how many more there are"),
}...)}

const (
	refusesDuplicates = "the plan fails, because the API server refuses the ClusterServiceVersion"
	laterCounts       = "a Deployment with the same content is valid (decision 39)"
	silentlyDropped   = "no warning about a kind that it decodes"
	alwaysReported    = "the author learns of it (decision 21)"
)

// dropped returns a rule about a kind whose unknown fields OLM drops without a warning.
func dropped(id, given, then string) Rule {
	return Rule{ID: id, Given: given, Then: then, Difference: silentlyDropped, Reason: alwaysReported}
}

// resting returns a rule with a rest period.
func resting(r Rule, rest time.Duration) Rule {
	r.Rest = rest
	return r
}

func unknownFieldsByKind() []Rule {
	const then = "within 10 s the bundle is installed without the field, and one Event has exactly OLM's note with the path"
	var rules []Rule
	for _, kind := range []string{
		"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "BundleSecret", "Service", "CustomResourceDefinition",
	} {
		rules = append(rules, dropped("H1-"+kind, fmt.Sprintf("a %s with an unknown field", kind), then))
	}
	for _, kind := range []string{"PriorityClass", "PodDisruptionBudget", "NetworkPolicy"} {
		rules = append(rules, Rule{ID: "H1-" + kind, Given: fmt.Sprintf("a %s with an unknown field", kind), Then: then})
	}
	for _, kind := range []string{
		"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "BundleSecret", "Service", "CustomResourceDefinition",
	} {
		rules = append(rules, dropped("H2-"+kind, fmt.Sprintf("a %s with an unknown field of its metadata", kind), then))
	}
	return append(
		rules,
		Rule{ID: "H2-PodDisruptionBudget", Given: "a PodDisruptionBudget with an unknown field of its metadata", Then: then},
		dropped("H3-Role", "a Role with an unknown field in a rule", then),
		dropped("H3-Cluster", "a ClusterRole with an unknown field in a rule", then),
		dropped("H4-Service", "a Service with an unknown field in its second port", then),
		Rule{ID: "H4-Budget", Given: "a PodDisruptionBudget with an unknown field in an expression of its selector", Then: then},
		dropped("H5", "a ConfigMap with the field datas", then),
		dropped("H6", "a ServiceAccount with the field secretz", then),
		dropped("H7-version", "a CustomResourceDefinition with the field version of v1beta1", then),
		dropped("H7-names", "a CustomResourceDefinition with an unknown name", then),
		dropped("H7-validation", "a CustomResourceDefinition with the field validation of v1beta1", then),
		dropped("H7-columns", "a CustomResourceDefinition with the field additionalPrinterColumns of v1beta1", then),
		dropped("H7-schema", "a CustomResourceDefinition with an unknown field in its schema", then),
		Rule{ID: "H7-preserve", Given: "a CustomResourceDefinition with preserveUnknownFields false", Then: "it is established, without a warning"},
		dropped("H7-list", "a CustomResourceDefinition with an unknown field in a version", then),
	)
}
