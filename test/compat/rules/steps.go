package rules

import "fmt"

var steps = Group{Letter: "B", Title: "Steps of InstallPlans that others create", Rules: append(stepKinds(), []Rule{
	{
		ID: "B23", Given: "a step for a PodDisruptionBudget without group; its manifest has apiVersion policy/v1",
		Then: "the plan is Complete within 5 s",
	},
	{
		ID: "B24", Given: "a step for a PodDisruptionBudget without group, whose manifest has neither apiVersion nor kind",
		Then:       "with a version in the step, the plan is Complete; without it, the plan fails at once and the message asks for apiVersion and kind",
		Difference: "the manifest cannot be decoded, and the plan fails after its deadline",
		Reason:     "only one group with this kind is allowed, so the step is unambiguous (decision 21)",
	},
	{
		ID: "B25", Given: "a step for a CustomResourceDefinition without group, with version apiextensions.k8s.io/v1",
		Then: "the plan is Complete, and an annotation of the definition names the ClusterServiceVersion",
	},
	{
		ID: "B26", Given: "B25, and a second plan with the same definition for another ClusterServiceVersion",
		Then: "the plan is Complete, and the definition has an annotation for each",
	},
	{ID: "B28", Given: "the manifest of a ClusterRole names a namespace", Then: "the ClusterRole is created without it"},
	{
		ID: "B29", Given: "a step without resolving; its ConfigMap has no owner reference",
		Then: "the plan is Complete; the ConfigMap has no owner and stays when a ClusterServiceVersion is deleted",
	},
	{
		ID: "B30", Given: "a step without resolving; its ConfigMap names a ClusterServiceVersion as owner without a UID",
		Then: "the reference gets the UID, and the ConfigMap is deleted with its owner",
	},
	{
		ID: "B31", Given: "as B30, but the ClusterServiceVersion does not exist",
		Then: "the step is retried until the deadline; the plan fails then, at most 2 s later and not before; the messages name the owner",
	},
	{ID: "B32", Given: "B31, and the ClusterServiceVersion is created before the deadline", Then: "the plan is Complete within 10 s after that"},
	{ID: "B33", Given: "the manifest of a ConfigMap names its owner with a wrong UID", Then: "the ConfigMap has the right UID"},
	{
		ID: "B34", Given: "a step with resolving, whose manifest names another ClusterServiceVersion as owner",
		Then: "both own the object",
	},
	{
		ID: "B35", Given: "a ServiceAccount exists with an owner, secrets, pull secrets and annotations; a step brings it for another owner",
		Then:       "it has both owners and keeps everything else; the step is Present",
		Difference: "the pull secrets are removed", Reason: "pull secrets of others stay (decision 21)",
	},
	{
		ID: "B36-Role", Given: "a Role of one version exists; a step brings it for the next version",
		Then: "both versions own it", Difference: "the first owner is dropped", Reason: differenceOwners,
	},
	{
		ID: "B36-Service", Given: "a Service of one version exists; a step brings it for the next version",
		Then: "both versions own it", Difference: "the first owner is dropped", Reason: differenceOwners,
	},
	{
		ID: "B36-ConfigMap", Given: "a ConfigMap of one version exists; a step brings it for the next version",
		Then: "both versions own it", Difference: "the first owner is dropped", Reason: differenceOwners,
	},
	{ID: "B37", Given: "a manifest has an owner reference to another kind", Then: "the reference is kept as it is"},
	{
		ID: "B38", Given: "a Service without owner exists; a step without resolving brings it",
		Then: "the plan is Complete, the Service keeps its address, and the step is Present",
	},
	{
		ID: "B39", Given: "a ConfigMap of one operator exists; a step of no operator brings it",
		Then:       "the plan fails at its deadline, and at most 2 s later; the message names the owner; the ConfigMap is not written",
		Difference: "the ConfigMap is overwritten and loses its owner",
		Reason:     "objects of another operator stay unchanged (decision 21)",
	},
	{
		ID: "B40", Given: "a step of a known kind, in a group that the cluster does not serve",
		Then: "within 5 s the step is retried, and the plan fails at its deadline, at most 2 s later; OLM's sentence names group, version and kind of the step",
	},
	{
		ID: "B41", Given: "a step of a kind that plans must not contain",
		Then:       "the plan fails at once; the step is UnsupportedResource; the message names the kind and the flag that allows it",
		Difference: "the plan fails after its deadline with \"the InstallPlan contains invalid data\"",
		Reason:     "no retry can help, and the message names the remedy (decision 21)",
	},
	{
		ID: "B42", Given: "B41, with flags that allow a namespaced kind and a cluster-scoped one",
		Then:       "the plan is Complete; a ClusterServiceVersion owns the objects, by reference or by labels, and both are deleted with it",
		Difference: "no flag adds kinds; the plan fails after its deadline", Reason: "bundles with other kinds do not need a fork (decision 21)",
	},
	{
		ID: "B43", Given: "B42, and the account of the OperatorGroup has no permission for the kind",
		Then:       "the step is retried for longer than the deadline, the cause names the permission to grant, and with it the plan is Complete",
		Difference: "no flag adds kinds; the plan fails after its deadline", Reason: "bundles with other kinds do not need a fork (decision 21)",
	},
	{
		ID: "B44", Given: "the OperatorGroup names an account that may not create Services; a plan has a CustomResourceDefinition and a Service",
		Then: "the definition is created, the Service is retried, and the plan is Complete within 5 s after the right is granted",
	},
	{
		ID: "B45", Given: "a plan of two steps; the second one contradicts itself",
		Then:       "the plan fails at once, and nothing of the first step is applied",
		Difference: "the object gets the name of the manifest", Reason: differenceContradiction,
	},
	{ID: "B46", Given: "a step with status Present and a manifest without meaning", Then: "the plan is Complete"},
	{
		ID: "B47", Given: "a step with an empty status", Then: "the step is applied",
		Difference: "the plan fails after its deadline with \"the InstallPlan contains invalid data\"", Reason: "an empty status has only one meaning (decision 39)",
	},
	{
		ID: "B48", Given: "a plan has no steps for 60 s, and then gets some",
		Then: "it has no phase and no condition, and is not written; then it is Complete within 5 s",
	},
	{
		ID: "B49", Given: "the name of a step differs from the name in its manifest",
		Then:       "the plan fails at once, and the message has both names",
		Difference: "the object gets the name of the manifest", Reason: differenceContradiction,
	},
	{
		ID: "B50", Given: "the API server answers a step with a warning",
		Then: "the plan has one Event AppliedWithWarnings with exactly OLM's note, whose field path names the step",
	},
	{
		ID: "B50-Metric", Given: "the API server answers a step with a warning", Then: "the metric installplan_warnings_total rises by 1",
		Untried: olmMetrics,
	},
	{
		ID: "B51", Given: "the account of the OperatorGroup may get, create and update ServiceMonitors; a plan creates one, and a second plan changes it",
		Then: "both plans are Complete",
	},
	{
		ID: "B52", Given: "the account of the OperatorGroup may do nothing with Services",
		Then: "the message has the refusal of a create",
	},
	{
		ID: "B53", Given: "the status of a plan names an account, and the OperatorGroup none",
		Then: "the steps are applied with the rights of that account",
	},
	{
		ID: "B54", Given: "a step for a Subscription in a plan that the manager did not create",
		Then: "the Subscription is created and its annotation olm.generated-by names the plan",
	},
	{
		ID: "B54-Bundle", Given: "a bundle contains a Subscription", Then: "the plan fails at once, and the Subscription is not created",
		Difference: "the Subscription is created", Reason: "A bundle must not install other operators (decision 16).",
	},
}...)}

// olmMetrics is why cases with metrics do not run with OLM.
const olmMetrics = "the tests do not read the metrics of OLM"

const (
	differenceOwners        = "an object stays as long as one of its owners (decision 39)"
	differenceContradiction = "permissions depend on the step, and the object would not be found again (decision 21)"
)

// stepKinds returns the rules for each kind that OLM decodes.
func stepKinds() []Rule {
	var rules []Rule
	for i, kind := range []string{
		"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Service", "ConfigMap", "BundleSecret",
		"ClusterServiceVersion", "Subscription", "CustomResourceDefinition",
	} {
		const then = "the plan is Complete within 5 s; the object has the label olm.managed; the step is Created"
		rules = append(
			rules,
			Rule{ID: fmt.Sprintf("B%d", i+1), Given: fmt.Sprintf("a step for a %s without group", kind), Then: then},
			Rule{ID: fmt.Sprintf("B%d", i+12), Given: fmt.Sprintf("a step for a %s without group, whose manifest has no type", kind), Then: then},
		)
		if kind == "CustomResourceDefinition" {
			last := &rules[len(rules)-1]
			last.Difference, last.Reason = "the manifest cannot be decoded without its kind", "the kind of the step is unambiguous (decision 21)"
		}
		if kind != "ClusterRole" && kind != "ClusterRoleBinding" && kind != "CustomResourceDefinition" {
			rules = append(rules, Rule{
				ID: "B27-" + kind, Given: fmt.Sprintf("the manifest of a %s names another namespace", kind),
				Then: "the object is created in the namespace of the plan, and none in the other one",
			})
		}
	}
	return rules
}
