package scale

import "slices"

// The budget of one installation of a plain bundle: a version, a CustomResourceDefinition, a
// Deployment, and permissions in the namespace and in the cluster.
const (
	// MaxRequests is the limit for each installation, for all controllers together, without Events.
	MaxRequests = 60
	// MaxUpdateRequests is the limit for each update to a version that replaces another.
	MaxUpdateRequests = 100
	// MaxReads is the limit of the reads among them.
	MaxReads = 20
	// MaxConflicts is the limit of conflicting writes for ConflictsPer installations.
	MaxConflicts = 10
	// ConflictsPer is the number of installations for MaxConflicts.
	ConflictsPer = 50
	// MaxGrowth is the factor by which requests and reconciliations of an installation may grow
	// between few and many namespaces with the operator.
	MaxGrowth = 1.2
)

// Row is the budget of one kind of request.
type Row struct {
	Kind

	// Each is the average number for one installation. It allows for additional reconciliations on
	// a loaded machine: the more time passes between two steps, the fewer events are merged.
	Each float64
	// First is the additional number if no namespace has the operator yet.
	First int
	// Minute is the number of periodic requests in a minute, which belong to no installation.
	Minute float64
	// Why is the reason for the requests.
	Why string
}

// Budget returns the budget of one installation, the writes first. A kind without a row must not occur.
func Budget() []Row {
	return slices.Concat(writesOfPlans(), writesOfVersions(), reads(), optionalAPIs())
}

const (
	crds     = "customresourcedefinitions.apiextensions.k8s.io"
	csvs     = "clusterserviceversions.operators.coreos.com"
	plans    = "installplans.operators.coreos.com"
	subs     = "subscriptions.operators.coreos.com"
	groups   = "operatorgroups.operators.coreos.com"
	operator = "operators.operators.coreos.com"
	rbac     = ".rbac.authorization.k8s.io"
	events   = "events.events.k8s.io"
)

// writesOfPlans returns the writes from the Subscription to the end of the InstallPlan.
func writesOfPlans() []Row {
	return []Row{
		{Kind: Kind{"create", plans}, Each: 1, Why: "The plan of the Subscription."},
		{Kind: Kind{"patch", plans + "/status"}, Each: 2.5, Why: "The plan gets its steps, and is Complete at the end."},
		{Kind: Kind{"patch", subs}, Each: 3.5, Why: "The annotation with the transitions, written before the status shows them."},
		{Kind: Kind{"patch", subs + "/status"}, Each: 5.5, Why: "UpgradePending, its plan, the phases of the plan, and AtLatestKnown."},
		{Kind: Kind{"create", csvs}, Each: 1, Why: "The step ClusterServiceVersion of the plan."},
		{Kind: Kind{"create", crds}, First: 1, Why: "The step CustomResourceDefinition of the first plan; later plans find it."},
		{Kind: Kind{"patch", crds}, Each: 2, Why: "The annotation of the version, and the label of the Operator."},
		{Kind: Kind{"create", "serviceaccounts"}, Each: 1, Why: "The step ServiceAccount of the plan."},
		{Kind: Kind{"create", "roles" + rbac}, Each: 1, Why: "The step Role of the plan."},
		{Kind: Kind{"create", "rolebindings" + rbac}, Each: 1, Why: "The step RoleBinding of the plan."},
		{Kind: Kind{"create", "clusterroles" + rbac}, Each: 1, First: 12, Why: "The step ClusterRole of the plan. For a new API, the four roles of its users."},
		{Kind: Kind{"create", "clusterrolebindings" + rbac}, Each: 1, Why: "The step ClusterRoleBinding of the plan."},
		{Kind: Kind{"create", events}, Each: 11, Why: "An Event for each transition of the Subscription and of the version."},
	}
}

// writesOfVersions returns the writes from the version to its success.
func writesOfVersions() []Row {
	return []Row{
		{Kind: Kind{"create", "deployments.apps"}, Each: 1, Why: "The Deployment of the version."},
		{Kind: Kind{"patch", csvs}, Each: 1.5, Why: "The labels of its APIs and the annotations of its OperatorGroup, in one write."},
		{Kind: Kind{"patch", csvs + "/status"}, Each: 7.5, Why: "Pending, its requirements, InstallReady, Installing, the progress of the Deployment, Succeeded."},
		{Kind: Kind{"patch", groups}, Each: 1.5, Why: "The annotation olm.providedAPIs gets the APIs of the version."},
		{Kind: Kind{"update", "clusterroles" + rbac}, Each: 3, First: 3, Why: "The existing roles admin, edit and view of the OperatorGroup select the new APIs."},
		{Kind: Kind{"patch", "operatorconditions.operators.coreos.com"}, Each: 1.5, Why: "The OperatorCondition of the version, by server-side apply."},
		{Kind: Kind{"patch", "roles" + rbac}, Each: 1.5, Why: "The Role with which the operator writes its OperatorCondition, by server-side apply."},
		{Kind: Kind{"patch", "rolebindings" + rbac}, Each: 1.5, Why: "The RoleBinding of that Role to the operator's account, by server-side apply."},
		{Kind: Kind{"create", operator}, Each: 1, Why: "The Operator of the package and namespace."},
		{Kind: Kind{"patch", operator + "/status"}, Each: 6, Why: "The Operator lists its components as they appear, at most once in 1.5 s."},
	}
}

// reads returns the live reads. Caches answer all others.
func reads() []Row {
	return []Row{
		{Kind: Kind{"get", plans}, Each: 1.5, Why: "The cache may lag, so the supervisor asks whether a plan of this name exists."},
		{Kind: Kind{"list", plans}, Each: 1.5, Why: "The cache may lack a plan. It is compared with this list, so that no plan is created twice."},
		{Kind: Kind{"list", csvs}, Each: 1.5, Why: "The cache may lack a version, which would then be installed twice."},
		{Kind: Kind{"list", groups}, Each: 1.5, Why: "The account of the group decides with which permissions the plan writes."},
		{Kind: Kind{"get", crds}, Each: 1.5, First: 6, Why: "A step compares the schemas of the definition, which the cache lacks."},
		{Kind: Kind{"get", csvs}, Each: 2.5, Why: "Before each action, such as writing a Deployment, the version must be unchanged."},
		{Kind: Kind{"get", groups}, Each: 1.5, Why: "Before a Deployment is written, its account must still be that of the group."},
		{Kind: Kind{"get", "configmaps"}, Minute: 15, Why: "The supervisor checks every five seconds whether a migration from OLM is in progress."},
	}
}

// optionalAPIs returns the periodic requests that find out whether an absent API exists now.
func optionalAPIs() []Row {
	const why = "The supervisor checks every five minutes whether the cluster has this optional API now."
	var rows []Row
	for _, group := range []string{"autoscaling.k8s.io", "config.openshift.io", "monitoring.coreos.com"} {
		rows = append(rows,
			Row{Kind: Kind{"get", "/apis/" + group}, Minute: 0.2, Why: why},
			Row{Kind: Kind{"get", "/apis/" + group + "/v1"}, Minute: 0.2, Why: why})
	}
	for _, resource := range []string{"proxies.config.openshift.io", "servicemonitors.monitoring.coreos.com", "verticalpodautoscalers.autoscaling.k8s.io"} {
		rows = append(rows, Row{Kind: Kind{"list", resource}, Minute: 0.2, Why: why})
	}
	return rows
}

// find returns the row of a kind.
func find(k Kind) (Row, bool) {
	all := Budget()
	i := slices.IndexFunc(all, func(r Row) bool { return r.Kind == k })
	if i < 0 {
		return Row{}, false
	}
	return all[i], true
}
