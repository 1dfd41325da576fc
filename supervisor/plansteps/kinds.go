package plansteps

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds with special rules in a plan.
const (
	kindCSV = "ClusterServiceVersion"
	kindCRD = "CustomResourceDefinition"
	// kindSubscription is the kind that a plan creates for a package that an operator needs. It is not a supported
	// kind: a bundle must not contain one.
	kindSubscription = "Subscription"
	// kindBundleSecret is the kind of a step for a Secret from a bundle, as opposed to a pull secret that is copied.
	kindBundleSecret = "BundleSecret"
	kindSecret       = "Secret"

	groupOperators     = "operators.coreos.com"
	groupAPIExtensions = "apiextensions.k8s.io"
	groupRBAC          = "rbac.authorization.k8s.io"
)

// Scope reports whether the objects of a kind have a namespace.
type Scope bool

// The scopes of a kind.
const (
	Namespaced    Scope = true
	ClusterScoped Scope = false
)

// supported lists the kinds that a bundle may contain, with their scope. Existing bundles are built for this
// set. Other kinds are refused by name, rather than applied with the supervisor's permissions.
var supported = map[schema.GroupKind]Scope{
	{Group: groupOperators, Kind: kindCSV}:                       Namespaced,
	{Group: groupAPIExtensions, Kind: kindCRD}:                   ClusterScoped,
	{Kind: kindSecret}:                                           Namespaced,
	{Kind: "ConfigMap"}:                                          Namespaced,
	{Kind: "Service"}:                                            Namespaced,
	{Kind: "ServiceAccount"}:                                     Namespaced,
	{Group: groupRBAC, Kind: "Role"}:                             Namespaced,
	{Group: groupRBAC, Kind: "RoleBinding"}:                      Namespaced,
	{Group: groupRBAC, Kind: "ClusterRole"}:                      ClusterScoped,
	{Group: groupRBAC, Kind: "ClusterRoleBinding"}:               ClusterScoped,
	{Group: "policy", Kind: "PodDisruptionBudget"}:               Namespaced,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:          ClusterScoped,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:          Namespaced,
	{Group: "autoscaling.k8s.io", Kind: "VerticalPodAutoscaler"}: Namespaced,
	{Group: "monitoring.coreos.com", Kind: "ServiceMonitor"}:     Namespaced,
	{Group: "monitoring.coreos.com", Kind: "PrometheusRule"}:     Namespaced,
	{Group: "console.openshift.io", Kind: "ConsoleYAMLSample"}:   ClusterScoped,
	{Group: "console.openshift.io", Kind: "ConsoleQuickStart"}:   ClusterScoped,
	{Group: "console.openshift.io", Kind: "ConsoleCLIDownload"}:  ClusterScoped,
	{Group: "console.openshift.io", Kind: "ConsoleLink"}:         ClusterScoped,
	{Group: "console.openshift.io", Kind: "ConsolePlugin"}:       ClusterScoped,
}

// ScopeOf returns the scope of a kind and reports whether a plan may contain objects of it. BundleSecret counts
// as Secret.
func ScopeOf(gk schema.GroupKind) (scope Scope, ok bool) {
	scope, ok = supported[objectKind(gk)]
	return scope, ok
}

// LabelledKinds returns the kinds of objects that name their ClusterServiceVersion by labels alone, sorted.
// After the deletion of the version, only these labels show the owner.
func LabelledKinds() []schema.GroupKind {
	var kinds []schema.GroupKind
	for gk, scope := range supported {
		if scope == ClusterScoped && gk.Kind != kindCRD {
			kinds = append(kinds, gk)
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	return kinds
}

// objectKind returns the kind of the object that a step of a kind applies.
func objectKind(gk schema.GroupKind) schema.GroupKind {
	if gk.Group == "" && gk.Kind == kindBundleSecret {
		gk.Kind = kindSecret
	}
	return gk
}
