package rules

// deployments is the reason for differences in how catalogs run.
const deployments = "Deployments replace lost pods and roll out without a gap (decision 13)"

var catalogPods = Group{Letter: "O", Title: "How catalogs run", Rules: []Rule{
	{
		ID: "O1", Given: "a catalog of an image is READY",
		Then:       "its pods are found by olm.catalogSource, have olm.managed=true, and belong to a ReplicaSet; none has the label catalogsource.operators.coreos.com/update",
		Difference: "the pods belong to the CatalogSource", Reason: deployments,
	},
	{ID: "O2", Given: "the pod of a READY catalog is deleted", Then: "within 10 s there is another one"},
	{ID: "O3", Given: "the NetworkPolicy NAME-grpc-server of a catalog is deleted", Then: "within 10 s it is there"},
	{ID: "O4", Given: "the NetworkPolicy NAME-grpc-server of a catalog is changed", Then: "within 10 s it is as before"},
	{
		ID: "O5", Given: "a user creates a NetworkPolicy NAME-unpack-bundles", Then: "it stays as it is",
		Difference: "OLM has one of this name", Reason: "no Jobs unpack bundles (decision 20)",
	},
	{ID: "O6", Given: "spec.grpcPodConfig has a node selector, tolerations, a priority class and an affinity", Then: "the pods have them"},
	{ID: "O7-legacy", Given: "securityContextConfig is legacy", Then: "the pod's security context is empty"},
	{ID: "O7-restricted", Given: "securityContextConfig is restricted", Then: "the pod runs as non-root with the seccomp profile RuntimeDefault, its container without capabilities"},
	{ID: "O7-namespace", Given: "the namespace enforces the level baseline or none; securityContextConfig is not set", Then: "the pod is restricted if and only if the namespace enforces restricted"},
	{
		ID: "O8", Given: "the container of a catalog cannot start", Then: "Progressing is False and has the message of the container",
		Difference: "no condition has it", Reason: "users see why the catalog does not serve (decision 39)",
	},
}}
