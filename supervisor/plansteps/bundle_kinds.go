package plansteps

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
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

// String returns the scope in words.
func (s Scope) String() string {
	if s == ClusterScoped {
		return "cluster-scoped"
	}
	return "namespaced"
}

// supported lists the kinds that a bundle may always contain, with their scope. Existing bundles are built for
// this set. Other kinds are refused by name, rather than applied with the supervisor's permissions.
var supported = Kinds{
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

// Kinds are the kinds that bundles may contain in addition to those that OLM supports, with their scope. Nil
// adds none.
type Kinds map[schema.GroupKind]Scope //nolint:recvcheck // Set is the method of a flag, the others read

// FlagKind is the flag of the supervisor that adds a kind.
const FlagKind = "bundle-kind"

// scopeCluster is the end of a value of the flag for a cluster-scoped kind.
const scopeCluster = ":cluster"

// Argument returns the argument that adds a kind, with the scope in which the cluster serves it; namespaced if it does
// not. It is empty if no argument may add the kind.
func Argument(gvk schema.GroupVersionKind, served apimeta.RESTMapper) string {
	value := gvk.Group + "/" + gvk.Kind
	if mapping, err := served.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil && mapping.Scope.Name() == apimeta.RESTScopeNameRoot {
		value += scopeCluster
	}
	if (&Kinds{}).Set(value) != nil {
		return ""
	}
	return "--" + FlagKind + "=" + value
}

// PermissionsCommand returns the command that grants the supervisor the permissions for all added kinds. It is empty if
// no added kind has the name.
func (k Kinds) PermissionsCommand(kind string) string {
	if !slices.ContainsFunc(k.Sorted(), func(gk schema.GroupKind) bool { return gk.Kind == kind }) {
		return ""
	}
	return fmt.Sprintf("supervisor rbac --%s=%s | kubectl apply -f -", FlagKind, k.String())
}

// kindPattern matches the kinds that the flag may add.
var kindPattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// Set adds a kind, of the form GROUP/KIND or GROUP/KIND:cluster, or several that commas separate.
func (k *Kinds) Set(text string) error {
	for value := range strings.SplitSeq(text, ",") {
		name, cluster := strings.CutSuffix(value, scopeCluster)
		group, kind, found := strings.Cut(name, "/")
		if !found || !kindPattern.MatchString(kind) || len(validation.IsDNS1123Subdomain(group)) > 0 {
			return fmt.Errorf("%q does not have the form GROUP/KIND, or GROUP/KIND%s for a cluster-scoped kind", value, scopeCluster)
		}
		gk, scope := schema.GroupKind{Group: group, Kind: kind}, Scope(!cluster)
		if problem := k.problem(gk, scope); problem != "" {
			return fmt.Errorf("%q: %s", value, problem)
		}
		if *k == nil {
			*k = Kinds{}
		}
		(*k)[gk] = scope
	}
	return nil
}

// problem returns why a kind cannot be added, with the remedy; empty if it can. A step may name a kind without its
// group, so the kind must not have the name of a kind with rules of its own.
func (k *Kinds) problem(gk schema.GroupKind, scope Scope) string {
	always, isSupported := supported[gk]
	_, typed := typedKinds[gk.Kind]
	added, isAdded := (*k)[gk]
	switch {
	case isSupported && (typed || always != scope):
		return fmt.Sprintf("bundles may always contain the kind %s, which is %s; remove it from the flag", gk.Kind, always)
	case gk.Group == groupOperators:
		return fmt.Sprintf("bundles must not contain the kind %s of %s; remove it from the flag", gk.Kind, groupOperators)
	case gk.Kind == kindBundleSecret, gk.Kind == kindSubscription:
		return fmt.Sprintf("the kind %s is reserved for steps of the supervisor; remove it from the flag", gk.Kind)
	case typed:
		return fmt.Sprintf("bundles may contain the kind %s only in its own group; remove it from the flag", gk.Kind)
	case isAdded && added != scope:
		return fmt.Sprintf("the flag names the kind %s both as namespaced and as cluster-scoped; remove one of the two", gk.Kind)
	}
	return ""
}

// String returns the kinds in the form of the flag.
func (k *Kinds) String() string {
	var values []string
	for _, gk := range k.Sorted() {
		value := gk.Group + "/" + gk.Kind
		if (*k)[gk] == ClusterScoped {
			value += scopeCluster
		}
		values = append(values, value)
	}
	return strings.Join(values, ",")
}

// Type returns the name of the type of the flag.
func (*Kinds) Type() string { return "kind" }

// ScopeOf returns the scope of a kind and reports whether a plan may contain objects of it. BundleSecret counts
// as Secret.
func (k Kinds) ScopeOf(gk schema.GroupKind) (scope Scope, ok bool) {
	gk = ObjectKind(gk)
	if scope, ok = supported[gk]; !ok {
		scope, ok = k[gk]
	}
	return scope, ok
}

// Sorted returns the added kinds, sorted.
func (k Kinds) Sorted() []schema.GroupKind {
	return slices.SortedFunc(maps.Keys(k), func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
}

// IsKnown reports whether a plan may contain objects of a kind of that name, in any group.
func (k Kinds) IsKnown(kind string) bool { return len(k.groups(kind)) > 0 }

// StepKinds returns the kinds that steps of a plan may name, sorted.
func (k Kinds) StepKinds() []string {
	names := sets.New(kindSubscription, kindBundleSecret)
	for _, kinds := range []Kinds{supported, k} {
		for gk := range kinds {
			names.Insert(gk.Kind)
		}
	}
	return sets.List(names)
}

// groups returns the groups in which a plan may contain objects of a kind.
func (k Kinds) groups(kind string) []string {
	var groups []string
	for _, kinds := range []Kinds{supported, k} {
		for gk := range kinds {
			if gk.Kind == kind && !slices.Contains(groups, gk.Group) {
				groups = append(groups, gk.Group)
			}
		}
	}
	return groups
}

// Labelled returns the kinds of objects that name their ClusterServiceVersion by labels alone, sorted.
// After the deletion of the version, only these labels show the owner.
func (k Kinds) Labelled() []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, each := range []Kinds{supported, k} {
		for gk, scope := range each {
			if scope == ClusterScoped && gk.Kind != kindCRD {
				kinds = append(kinds, gk)
			}
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	return kinds
}

// ObjectKind returns the kind of the object that a step of a kind applies: Secret for BundleSecret.
func ObjectKind(gk schema.GroupKind) schema.GroupKind {
	if gk.Group == "" && gk.Kind == kindBundleSecret {
		gk.Kind = kindSecret
	}
	return gk
}
