package providedapis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

// Result is the effect of the claims of groups on a ClusterServiceVersion.
type Result string

// The results of Evaluate.
const (
	// UpToDate: the group has claimed the APIs of the ClusterServiceVersion, and keeps them.
	UpToDate Result = "UpToDate"
	// Add: the group has yet to claim them, and no other group is in conflict.
	Add Result = "Add"
	// Remove: the group has claimed them, and must give them up to a group that outranks it. Conflict follows.
	Remove Result = "Remove"
	// Conflict: another group that reaches a namespace of this one has claimed them.
	Conflict Result = "Conflict"
	// Static: the group's claims are fixed and would have to change.
	Static Result = "Static"
)

// Finding is a Result with the APIs and groups that it is about.
type Finding struct {
	Result Result
	// APIs are those that have yet to be claimed, must be given up or are in conflict.
	APIs Set
	// Groups are the groups in conflict, sorted.
	Groups []types.NamespacedName
}

// Evaluate returns the effect of the claims of a group and of all others on a ClusterServiceVersion of the
// group.
func Evaluate(group *operatorsv1.OperatorGroup, others []operatorsv1.OperatorGroup, csv *operatorsv1alpha1.ClusterServiceVersion) Finding {
	provided, claimed := Of(csv), Claimed(group)
	kept, by := contested(competitorsOf(group, others), claimed, provided)
	missing := provided.Without(claimed)
	switch {
	case len(kept) > 0:
		found := Finding{Result: Conflict, APIs: kept, Groups: by}
		if len(missing) == 0 {
			found.Result = Remove
		}
		// A claim in a fixed list cannot be given up.
		if group.Spec.StaticProvidedAPIs && found.Result == Remove {
			found.Result = Static
		}
		return found
	case len(missing) > 0 && group.Spec.StaticProvidedAPIs:
		return Finding{Result: Static, APIs: missing}
	case len(missing) > 0:
		return Finding{Result: Add, APIs: missing}
	default:
		return Finding{Result: UpToDate}
	}
}

// Blocks reports whether a ClusterServiceVersion must not run.
func (f Finding) Blocks() bool {
	return f.Result == Remove || f.Result == Conflict || f.Result == Static
}

// Explain returns a clause about why a ClusterServiceVersion must not run: the conflict and the remedy. It is
// empty if there is no conflict.
func (f Finding) Explain() string {
	if !f.Blocks() {
		return ""
	}
	return f.Reason() + "; " + f.Remedy()
}

// Reason returns the conflict of a Finding that blocks.
func (f Finding) Reason() string {
	apis := strings.Join(f.APIs.names(), ", ")
	if len(f.Groups) == 0 {
		return fmt.Sprintf("%s not in the annotation %s of an OperatorGroup with spec.staticProvidedAPIs", apis, operatorsv1.OperatorGroupProvidedAPIsAnnotationKey)
	}
	groups := make([]string, len(f.Groups))
	for i, key := range f.Groups {
		groups[i] = key.String()
	}
	return fmt.Sprintf("%s provided in a common namespace by OperatorGroup %s already", apis, strings.Join(groups, ", "))
}

// Remedy returns how to end the conflict of a Finding that blocks.
func (f Finding) Remedy() string {
	if len(f.Groups) == 0 {
		return "add it there, or set staticProvidedAPIs to false"
	}
	return "let the two groups target different namespaces, or remove one of the operators"
}

// Desired returns the APIs that a group should claim: the APIs of its members, each member as a whole or not at
// all. A member without one of its APIs does not run, so it must not block its other APIs. Nor must a member
// that cannot run in the group. Fixed claims remain unchanged. A member is a ClusterServiceVersion of the
// group's namespace that is not a copy.
//
// Without grow, nothing is added: if several groups share a namespace, none of them claims more.
func Desired(group *operatorsv1.OperatorGroup, others []operatorsv1.OperatorGroup, members []operatorsv1alpha1.ClusterServiceVersion, grow bool) Set {
	claimed := Claimed(group)
	if group.Spec.StaticProvidedAPIs {
		return claimed
	}
	competitors := competitorsOf(group, others)
	want := Set{}
	for i := range members {
		apis := Of(&members[i])
		if kept, _ := contested(competitors, claimed, apis); len(kept) > 0 {
			continue
		}
		if !grow || !Supported(group, &members[i]) {
			apis = apis.Both(claimed)
		}
		want.Add(apis)
	}
	return want
}

// Supported reports whether a ClusterServiceVersion can watch the targets of its group. One that cannot does
// not run, and must not prevent others from running.
func Supported(group *operatorsv1.OperatorGroup, csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	if !csv.DeletionTimestamp.IsZero() {
		return false
	}
	modes, err := operatorsv1alpha1.NewInstallModeSet(csv.Spec.InstallModes)
	return err == nil && modes.Supports(csv.Namespace, group.Status.Namespaces) == nil
}

// outranks reports whether the first of two groups that claim an API keeps it. A fixed list of an administrator
// precedes a derived one. Then the older group takes precedence, and at the same age the one whose namespace
// and name come first.
func outranks(a, b *operatorsv1.OperatorGroup) bool {
	if a.Spec.StaticProvidedAPIs != b.Spec.StaticProvidedAPIs {
		return a.Spec.StaticProvidedAPIs
	}
	return cmp.Or(
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
	) < 0
}

// competitor is another group that reaches a namespace of a group.
type competitor struct {
	key    types.NamespacedName
	claims Set
	// yields is true if the competitor gives up what both have claimed.
	yields bool
}

// competitorsOf returns the groups with claims that reach a namespace of this one, sorted. Groups of one namespace
// do not compete: if there are several, none of them is effective.
func competitorsOf(group *operatorsv1.OperatorGroup, others []operatorsv1.OperatorGroup) []competitor {
	var found []competitor
	for i := range others {
		other := &others[i]
		if other.Namespace == group.Namespace || other.Annotations[operatorsv1.OperatorGroupProvidedAPIsAnnotationKey] == "" || !Intersect(group, other) {
			continue
		}
		found = append(found, competitor{
			key:    types.NamespacedName{Namespace: other.Namespace, Name: other.Name},
			claims: Claimed(other),
			yields: outranks(group, other),
		})
	}
	slices.SortFunc(found, func(a, b competitor) int { return cmp.Compare(a.key.String(), b.key.String()) })
	return found
}

// contested returns the APIs that competitors keep from a group with these claims, and the names of the
// competitors. A group that has claimed an API itself yields only to one that outranks it. A group that has not
// claimed it yields to every claim.
func contested(competitors []competitor, claimed, apis Set) (kept Set, by []types.NamespacedName) {
	kept = Set{}
	for _, c := range competitors {
		common := apis.Both(c.claims)
		if c.yields {
			common = common.Without(claimed)
		}
		if len(common) > 0 {
			kept.Add(common)
			by = append(by, c.key)
		}
	}
	return kept, by
}
