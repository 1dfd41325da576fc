package providedapis

import (
	"fmt"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

// Result is what the claims of groups mean for a ClusterServiceVersion.
type Result string

// What a verdict may be.
const (
	// Settled: the group has claimed what the ClusterServiceVersion provides, and
	// keeps it.
	Settled Result = "Settled"
	// Add: the group has yet to claim it; nobody is in the way.
	Add Result = "Add"
	// Remove: the group has claimed it, and has to give it back to a group that
	// outranks it. What follows is Conflict.
	Remove Result = "Remove"
	// Conflict: another group that reaches a namespace of this one has claimed it.
	Conflict Result = "Conflict"
	// Static: the group's claims are fixed and would have to change.
	Static Result = "Static"
)

// Finding is a Result with what and whom it is about.
type Finding struct {
	Result Result
	// APIs are those that have yet to be claimed, have to be given back or are in
	// conflict.
	APIs Set
	// Groups are those in the way, sorted.
	Groups []types.NamespacedName
}

// Verdict says what the claims of a group and of all others mean for a
// ClusterServiceVersion of the group.
func Verdict(group *operatorsv1.OperatorGroup, others []operatorsv1.OperatorGroup, csv *operatorsv1alpha1.ClusterServiceVersion) Finding {
	provided, claimed := Of(csv), Claimed(group)
	taken, by := kept(rivalsOf(group, others), claimed, provided)
	missing := provided.Without(claimed)
	switch {
	case len(taken) > 0:
		found := Finding{Result: Conflict, APIs: taken, Groups: by}
		if len(missing) == 0 {
			found.Result = Remove
		}
		// A claim in a fixed list cannot be given back.
		if group.Spec.StaticProvidedAPIs && found.Result == Remove {
			found.Result = Static
		}
		return found
	case len(missing) > 0 && group.Spec.StaticProvidedAPIs:
		return Finding{Result: Static, APIs: missing}
	case len(missing) > 0:
		return Finding{Result: Add, APIs: missing}
	default:
		return Finding{Result: Settled}
	}
}

// Stops reports whether a ClusterServiceVersion must not run.
func (f Finding) Stops() bool {
	return f.Result == Remove || f.Result == Conflict || f.Result == Static
}

// Explain says in a clause why a ClusterServiceVersion must not run, naming what
// is in the way and what ends it; empty when nothing is.
func (f Finding) Explain() string {
	apis := strings.Join(f.APIs.names(), ", ")
	switch {
	case !f.Stops():
		return ""
	case len(f.Groups) > 0:
		groups := make([]string, len(f.Groups))
		for i, key := range f.Groups {
			groups[i] = key.String()
		}
		return fmt.Sprintf("%s provided in a common namespace by OperatorGroup %s already; "+
			"let the two groups target different namespaces, or uninstall one of the operators", apis, strings.Join(groups, ", "))
	default:
		return fmt.Sprintf("%s not in the annotation %s of an OperatorGroup with spec.staticProvidedAPIs; "+
			"add it there, or set staticProvidedAPIs to false", apis, operatorsv1.OperatorGroupProvidedAPIsAnnotationKey)
	}
}

// Desired returns what a group ought to claim: what its members provide, each as a
// whole or not at all. One that another group keeps an API from does not run, and
// must not keep its other APIs from anybody; nor must one that cannot run in the
// group begin to. Fixed claims stay as they are. A member is a
// ClusterServiceVersion of the group's namespace that is no copy.
//
// Without grow nothing is added: where several groups share a namespace, none of
// them takes on more.
func Desired(group *operatorsv1.OperatorGroup, others []operatorsv1.OperatorGroup, members []operatorsv1alpha1.ClusterServiceVersion, grow bool) Set {
	claimed := Claimed(group)
	if group.Spec.StaticProvidedAPIs {
		return claimed
	}
	rivals := rivalsOf(group, others)
	want := Set{}
	for i := range members {
		apis := Of(&members[i])
		if taken, _ := kept(rivals, claimed, apis); len(taken) > 0 {
			continue
		}
		if !grow || !Supported(group, &members[i]) {
			apis = apis.Both(claimed)
		}
		want.Add(apis)
	}
	return want
}

// Supported reports whether a ClusterServiceVersion can watch what its group
// targets. One that cannot does not run, and must not keep others from running.
func Supported(group *operatorsv1.OperatorGroup, csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	if !csv.DeletionTimestamp.IsZero() {
		return false
	}
	modes, err := operatorsv1alpha1.NewInstallModeSet(csv.Spec.InstallModes)
	return err == nil && modes.Supports(csv.Namespace, group.Status.Namespaces) == nil
}
