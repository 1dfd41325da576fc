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
		{Kind: Kind{"create", plans}, Each: 1, Why: "The plan of the Subscription."},
		{Kind: Kind{"patch", plans + "/status"}, Each: 2.5, Why: "The plan begins with its steps, and is Complete."},
		{Kind: Kind{"patch", subs}, Each: 3.5, Why: "The transitions of the Subscription are recorded before its status shows them."},
		{Kind: Kind{"patch", subs + "/status"}, Each: 5.5, Why: "The status shows each transition: pending, installing, installed."},
		{Kind: Kind{"create", csvs}, Each: 1, Why: "A step of the plan."},
		{Kind: Kind{"create", crds}, First: 1, Why: "A step of the first plan."},
		{Kind: Kind{"patch", crds}, Each: 2, Why: "A plan adds the annotation of its version and the label of its Operator."},
		{Kind: Kind{"create", "serviceaccounts"}, Each: 1, Why: "A step of the plan."},
		{Kind: Kind{"create", "roles" + rbac}, Each: 1, Why: "A step of the plan."},
		{Kind: Kind{"create", "rolebindings" + rbac}, Each: 1, Why: "A step of the plan."},
		{Kind: Kind{"create", "clusterroles" + rbac}, Each: 1, First: 12, Why: "A step of the plan; the first versions of an API create the four roles of its users."},
		{Kind: Kind{"create", "clusterrolebindings" + rbac}, Each: 1, Why: "A step of the plan."},
		{Kind: Kind{"create", events}, Each: 11, Why: "An Event for each transition of the Subscription and of the version."},
	}
}

// writesOfVersions returns the writes from the version to its success.
func writesOfVersions() []Row {
	return []Row{
		{Kind: Kind{"create", "deployments.apps"}, Each: 1, Why: "The Deployment of the version."},
		{Kind: Kind{"patch", csvs}, Each: 1.5, Why: "The labels of its APIs and the annotations of its OperatorGroup, in one write."},
		{Kind: Kind{"patch", csvs + "/status"}, Each: 7.5, Why: "Phases from Pending to Succeeded, requirements, and the progress of the Deployment."},
		{Kind: Kind{"patch", groups}, Each: 1.5, Why: "The OperatorGroup claims the APIs of the version."},
		{Kind: Kind{"update", "clusterroles" + rbac}, Each: 3, First: 3, Why: "The roles admin, edit and view of the OperatorGroup select the new APIs."},
		{Kind: Kind{"patch", "operatorconditions.operators.coreos.com"}, Each: 1.5, Why: "The OperatorCondition of the version."},
		{Kind: Kind{"patch", "roles" + rbac}, Each: 1.5, Why: "The operator may write its OperatorCondition."},
		{Kind: Kind{"patch", "rolebindings" + rbac}, Each: 1.5, Why: "The operator's account gets that Role."},
		{Kind: Kind{"create", operator}, Each: 1, Why: "The Operator of package and namespace."},
		{Kind: Kind{"patch", operator + "/status"}, Each: 6, Why: "The Operator lists its components, at most each five seconds."},
	}
}

// reads returns the live reads. Caches answer all others.
func reads() []Row {
	return []Row{
		{Kind: Kind{"get", plans}, Each: 1.5, Why: "That no plan of this name exists is no word of a cache, which may lag behind."},
		{Kind: Kind{"list", plans}, Each: 1.5, Why: "A plan is made when the cache has all plans of the namespace."},
		{Kind: Kind{"list", csvs}, Each: 1.5, Why: "A plan is made when the cache has all versions of the namespace."},
		{Kind: Kind{"list", groups}, Each: 1.5, Why: "The account of the group decides with whose rights a plan writes."},
		{Kind: Kind{"get", crds}, Each: 1.5, First: 6, Why: "The definition that a step compares with the bundle's; the cache has no schemas."},
		{Kind: Kind{"get", csvs}, Each: 2.5, Why: "Each action of a version is confirmed: it has not changed since its phase was decided."},
		{Kind: Kind{"get", groups}, Each: 1.5, Why: "Nothing is applied with the rights of an account that the group named earlier."},
		{Kind: Kind{"get", "configmaps"}, Minute: 15, Why: "The supervisor checks each five seconds whether a migration from OLM is in progress."},
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
