package plan

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds with rules of their own in a plan.
const (
	kindCSV = "ClusterServiceVersion"
	kindCRD = "CustomResourceDefinition"
	// kindSubscription is what a plan makes for a package that an operator needs.
	// It is none of the supported kinds: a bundle must not bring one.
	kindSubscription = "Subscription"
	// kindBundleSecret is what a plan calls a Secret that a bundle brings, to
	// tell it from a pull secret that is copied.
	kindBundleSecret = "BundleSecret"
	kindSecret       = "Secret"

	groupOperators     = "operators.coreos.com"
	groupAPIExtensions = "apiextensions.k8s.io"
	groupRBAC          = "rbac.authorization.k8s.io"
)

// Scope says whether the objects of a kind live in a namespace.
type Scope bool

// The scopes of a kind.
const (
	Namespaced    Scope = true
	ClusterScoped Scope = false
)

// supported lists the kinds a bundle may bring, with their scope: the set that
// existing bundles are built for. Anything else is refused by name instead of
// being given to the cluster with the supervisor's rights.
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

// ScopeOf returns the scope of a kind and whether a plan may hold objects of
// it. BundleSecret counts as Secret.
func ScopeOf(gk schema.GroupKind) (scope Scope, ok bool) {
	scope, ok = supported[objectKind(gk)]
	return scope, ok
}

// LabelledKinds returns the kinds of which a plan makes objects that name their
// ClusterServiceVersion by labels alone, sorted: nothing but these labels tells whose they
// are when that goes.
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

// objectKind maps a step's kind to the kind of the object it applies.
func objectKind(gk schema.GroupKind) schema.GroupKind {
	if gk.Group == "" && gk.Kind == kindBundleSecret {
		gk.Kind = kindSecret
	}
	return gk
}
