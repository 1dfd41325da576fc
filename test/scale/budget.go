package scale

import "slices"

// The budget of one installation of a plain bundle: a version, a CustomResourceDefinition, a
// Deployment, and permissions in the namespace and in the cluster.
const (
	// MaxRequests is the limit for each installation, for all controllers together, without Events. A first batch may
	// have more by what its rows allow.
	MaxRequests = 60
	// MaxUpdateRequests is the limit for each update to a version that replaces another.
	MaxUpdateRequests = 80
	// MaxReads is the limit of the reads among them.
	MaxReads = 20
	// MaxConflicts is the limit of conflicting writes for ConflictsPer installations.
	MaxConflicts = 10
	// ConflictsPer is the number of installations for MaxConflicts.
	ConflictsPer = 50
	// MaxUpdateReconciles is the limit of the reconciliations of all controllers for each update.
	MaxUpdateReconciles = 120
	// MaxGrowth is the factor by which requests and reconciliations of an installation may grow
	// between few and many namespaces with the operator.
	MaxGrowth = 1.2
)

// Row is the budget of one kind of request, or of the reconciliations of one controller.
type Row struct {
	Kind

	// Each is the average number for one installation. If each installation has the same number, it is
	// a tenth more, for a repetition when the cache lags. Otherwise, it is the largest number that was
	// measured with ten runnable processes for each processor, rounded up: the more time passes between two
	// steps, the fewer events are merged.
	Each float64
	// First is the additional number if no namespace has the operator yet.
	First int
	// Minute is the number of periodic requests in a minute, which belong to no installation.
	Minute float64
	// Why is the reason for the requests or reconciliations.
	Why string
}

// reconcile is the verb of the reconciliations of a controller, which is their resource.
const reconcile = "reconcile"

// Budget returns the budget of the requests of one installation, the writes first. A kind without a row must not occur.
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
		// A pass over the first plans may end before the API server serves the new definition. The plan shows it.
		{Kind: Kind{"patch", plans + "/status"}, Each: 2.2, First: 5, Why: "The plan gets its steps, and is Complete at the end."},
		{Kind: Kind{"patch", subs}, Each: 3.3, Why: "The annotation with the transitions, written before the status shows them."},
		{Kind: Kind{"patch", subs + "/status"}, Each: 4.8, Why: "UpgradePending, its plan, the phases of the plan, and AtLatestKnown."},
		{Kind: Kind{"create", csvs}, Each: 1, Why: "The step ClusterServiceVersion of the plan."},
		{Kind: Kind{"create", crds}, First: 1, Why: "The step CustomResourceDefinition of the first plan; later plans find it."},
		{Kind: Kind{"patch", crds}, Each: 2.2, Why: "The annotation of the version, and the label of the Operator. Without load, several installations share a write."},
		{Kind: Kind{"create", "serviceaccounts"}, Each: 1, Why: "The step ServiceAccount of the plan."},
		{Kind: Kind{"create", "roles" + rbac}, Each: 1, Why: "The step Role of the plan."},
		{Kind: Kind{"create", "rolebindings" + rbac}, Each: 1, Why: "The step RoleBinding of the plan."},
		{Kind: Kind{"create", "clusterroles" + rbac}, Each: 1, First: 12, Why: "The step ClusterRole of the plan. For a new API, the four roles of its users."},
		{Kind: Kind{"create", "clusterrolebindings" + rbac}, Each: 1, Why: "The step ClusterRoleBinding of the plan."},
		{Kind: Kind{"create", events}, Each: 10.5, Why: "An Event for each transition of the Subscription and of the version."},
	}
}

// writesOfVersions returns the writes from the version to its success.
func writesOfVersions() []Row {
	return []Row{
		{Kind: Kind{"create", "deployments.apps"}, Each: 1, Why: "The Deployment of the version."},
		{Kind: Kind{"patch", csvs}, Each: 1.1, Why: "The labels of its APIs and the annotations of its OperatorGroup, in one write."},
		// The first versions wait until the API server serves the new definition, and show it.
		{Kind: Kind{"patch", csvs + "/status"}, Each: 8, First: 5, Why: "Pending, its requirements, InstallReady, Installing, the progress of the Deployment, Succeeded."},
		{Kind: Kind{"patch", groups}, Each: 1.1, Why: "The annotation olm.providedAPIs gets the APIs of the version."},
		{Kind: Kind{"update", "clusterroles" + rbac}, Each: 3, First: 3, Why: "The existing roles admin, edit and view of the OperatorGroup select the new APIs."},
		{Kind: Kind{"patch", "operatorconditions.operators.coreos.com"}, Each: 1.1, Why: "The OperatorCondition of the version, by server-side apply."},
		{Kind: Kind{"patch", "roles" + rbac}, Each: 1.1, Why: "The Role with which the operator writes its OperatorCondition, by server-side apply."},
		{Kind: Kind{"patch", "rolebindings" + rbac}, Each: 1.5, Why: "The RoleBinding of that Role to the operator's account, by server-side apply."},
		{Kind: Kind{"create", operator}, Each: 1, Why: "The Operator of the package and namespace."},
		// The first installations take longer: with load, up to 18 s.
		{Kind: Kind{"patch", operator + "/status"}, Each: 8, First: 15, Why: "The Operator lists its components as they appear, at most once in 1.5 s."},
	}
}

// reads returns the live reads. Caches answer all others.
func reads() []Row {
	return []Row{
		{Kind: Kind{"get", plans}, Each: 1.1, Why: "The cache may lag, so the supervisor asks whether a plan of this name exists."},
		{Kind: Kind{"list", plans}, Each: 1.1, Why: "The cache may lack a plan, which would then be created twice."},
		{Kind: Kind{"list", csvs}, Each: 1.1, Why: "The cache may lack a version, which would then be installed twice."},
		// Each pass over a plan reads the account, also those that end before the new definition is served.
		{Kind: Kind{"list", groups}, Each: 1.1, First: 5, Why: "The account of the group decides with which permissions the plan writes."},
		{Kind: Kind{"get", crds}, Each: 1.1, First: 15, Why: "A step compares the schemas of the definition, which the cache lacks."},
		{Kind: Kind{"get", csvs}, Each: 2.2, Why: "Before each action, such as writing a Deployment, the version must be unchanged."},
		{Kind: Kind{"get", groups}, Each: 1.1, Why: "Before a Deployment is written, its account must still be that of the group."},
		{Kind: Kind{"get", "deployments.apps"}, Each: 0.1, Why: "The version is installing, and the cache does not have its new Deployment yet."},
		{Kind: Kind{"get", "configmaps"}, Minute: 15, Why: "The supervisor checks every five seconds whether a migration from OLM is in progress."},
	}
}

// optionalAPIs returns the periodic requests that find out whether an absent API exists now.
func optionalAPIs() []Row {
	const why = "Optional API."
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

// Reconciliations returns the budget of the controllers for one installation. A controller without a row must not
// run. The rows take the place of a comparison: load decides how many events a reconciliation merges.
func Reconciliations() []Row {
	return []Row{
		{Kind: Kind{reconcile, "clusterserviceversion"}, Each: 22, First: 20, Why: "The version and what it needs change: Deployment, account, permissions, OperatorGroup, Subscription, OperatorCondition."},
		{Kind: Kind{reconcile, "subscription"}, Each: 16.5, First: 20, Why: "The Subscription, its InstallPlan, the version and the OperatorGroup change, some of them several times."},
		{Kind: Kind{reconcile, "operator"}, Each: 12, First: 15, Why: "Components change until the end. Events of 1.5 s are merged, so a slower installation has more reconciliations."},
		{Kind: Kind{reconcile, "superseded-plans"}, Each: 7.2, Why: "The Subscription gets its plan, and the phases and labels of the plan change."},
		{Kind: Kind{reconcile, "operatorcondition"}, Each: 5.7, First: 20, Why: "The version is created and labelled, and the OperatorCondition, its Role and its RoleBinding are applied."},
		{Kind: Kind{reconcile, "installplan"}, Each: 5.7, First: 20, Why: "The plan gets its steps and their states, and its Subscription and OperatorGroup change."},
		{Kind: Kind{reconcile, "operatorgroup-api-roles"}, Each: 5.7, First: 20, Why: "The phase of the version changes five times. For a new API, its roles change."},
		{Kind: Kind{reconcile, "operatorgroup-roles"}, Each: 5.2, First: 20, Why: "The OperatorGroup changes, and Kubernetes aggregates its roles again."},
		{Kind: Kind{reconcile, "operatorgroup-claims"}, Each: 2.7, Why: "The version is created and changed, and the OperatorGroup gets its APIs."},
		{Kind: Kind{reconcile, "operatorgroup"}, Each: 2.2, Why: "The OperatorGroup gets the APIs of the version."},
		{Kind: Kind{reconcile, "operatorgroup-labels"}, Each: 1.1, Why: "The OperatorGroup gets the APIs of the version."},
		{Kind: Kind{reconcile, "adoption"}, Each: 1.1, First: 5, Why: "The objects and labels of the version appear, in one burst."},
		{Kind: Kind{reconcile, "olmconfig"}, Minute: 30, Why: "Changes of all versions reconcile the only OLMConfig, at most once in two seconds."},
		{Kind: Kind{reconcile, "failover"}, Minute: 2, Why: "The supervisor checks all replicas once in a minute."},
	}
}

// find returns the row of a kind.
func find(k Kind) (Row, bool) {
	all := slices.Concat(Budget(), Reconciliations())
	i := slices.IndexFunc(all, func(r Row) bool { return r.Kind == k })
	if i < 0 {
		return Row{}, false
	}
	return all[i], true
}
