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
func Budget() []Row { return slices.Concat(writesOfPlans(), writesOfVersions(), reads()) }

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
		{Kind: Kind{"create", plans}, Each: 1, Why: "The plan."},
		{Kind: Kind{"patch", plans + "/status"}, Each: 2.5, Why: "Its phases."},
		{Kind: Kind{"patch", subs}, Each: 3.5, Why: "Transition log."},
		{Kind: Kind{"patch", subs + "/status"}, Each: 5.5, Why: "Each transition."},
		{Kind: Kind{"create", csvs}, Each: 1, Why: "A step."},
		{Kind: Kind{"create", crds}, First: 1, Why: "A step of the first plan."},
		{Kind: Kind{"patch", crds}, Each: 2, Why: "Annotation of the version, label of the Operator."},
		{Kind: Kind{"create", "serviceaccounts"}, Each: 1, Why: "A step."},
		{Kind: Kind{"create", "roles" + rbac}, Each: 1, Why: "A step."},
		{Kind: Kind{"create", "rolebindings" + rbac}, Each: 1, Why: "A step."},
		{Kind: Kind{"create", "clusterroles" + rbac}, Each: 1, First: 12, Why: "A step; the roles for users of a new API."},
		{Kind: Kind{"create", "clusterrolebindings" + rbac}, Each: 1, Why: "A step."},
		{Kind: Kind{"create", events}, Each: 11, Why: "One for each transition."},
	}
}

// writesOfVersions returns the writes from the version to its success.
func writesOfVersions() []Row {
	return []Row{
		{Kind: Kind{"create", "deployments.apps"}, Each: 1, Why: "The Deployment."},
		{Kind: Kind{"patch", csvs}, Each: 1.5, Why: "Labels of APIs, annotations of the OperatorGroup."},
		{Kind: Kind{"patch", csvs + "/status"}, Each: 7.5, Why: "Phases, requirements, progress of the Deployment."},
		{Kind: Kind{"patch", groups}, Each: 1.5, Why: "Claims of APIs."},
		{Kind: Kind{"update", "clusterroles" + rbac}, Each: 3, First: 3, Why: "Roles of the OperatorGroup select new APIs."},
		{Kind: Kind{"patch", "operatorconditions.operators.coreos.com"}, Each: 1.5, Why: "The OperatorCondition."},
		{Kind: Kind{"patch", "roles" + rbac}, Each: 1.5, Why: "Permission to write it."},
		{Kind: Kind{"patch", "rolebindings" + rbac}, Each: 1.5, Why: "The same."},
		{Kind: Kind{"create", operator}, Each: 1, Why: "The Operator."},
		{Kind: Kind{"patch", operator + "/status"}, Each: 6, Why: "Its components, at most each five seconds."},
	}
}

// reads returns the live reads. Caches answer all others.
func reads() []Row {
	return []Row{
		{Kind: Kind{"get", plans}, Each: 1.5, Why: "No plan of this name exists."},
		{Kind: Kind{"list", plans}, Each: 1.5, Why: "The cache has all plans."},
		{Kind: Kind{"list", csvs}, Each: 1.5, Why: "The cache has all versions."},
		{Kind: Kind{"list", groups}, Each: 1.5, Why: "The account of the plan."},
		{Kind: Kind{"get", crds}, Each: 1.5, First: 6, Why: "Schemas, which the cache lacks."},
		{Kind: Kind{"get", csvs}, Each: 2.5, Why: "The version has not changed, before each action."},
		{Kind: Kind{"get", groups}, Each: 1.5, Why: "The group has not changed."},
		{Kind: Kind{"get", "configmaps"}, Minute: 15, Why: "Migration from OLM in progress, each five seconds."},
	}
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
