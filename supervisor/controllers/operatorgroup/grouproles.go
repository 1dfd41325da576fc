package operatorgroup

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/providedapis"
)

// The longest name that an object may have.
const maxName = validation.DNS1123SubdomainMaxLength

// groupRoles returns the cluster roles of a group, one for each level. Each
// gathers the rules of that level for the APIs that the group has claimed, so
// that a user of the group's operators can be given them by one binding.
//
// A role for a group without claims gathers nothing, and says that it has no
// rules: without a rule of aggregation Kubernetes would leave those it once
// gathered where they are.
func groupRoles(group *operatorsv1.OperatorGroup) []*rbacv1.ClusterRole {
	apis := providedapis.Claimed(group).Sorted()
	roles := make([]*rbacv1.ClusterRole, 0, len(levels()))
	for _, l := range levels() {
		role := &rbacv1.ClusterRole{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
			ObjectMeta: metav1.ObjectMeta{Name: groupRoleName(group, l), Labels: groupLabels(group)},
			Rules:      []rbacv1.PolicyRule{},
		}
		if len(apis) > 0 {
			role.Rules = nil
			role.AggregationRule = &rbacv1.AggregationRule{}
		}
		for _, gvk := range apis {
			role.AggregationRule.ClusterRoleSelectors = append(role.AggregationRule.ClusterRoleSelectors,
				metav1.LabelSelector{MatchLabels: map[string]string{aggregationLabel(gvk, l): "true"}})
		}
		roles = append(roles, role)
	}
	return roles
}

// groupRoleName is the name that existing clusters have for the role: with a
// digest of whose it is and of the level, since groups of several namespaces may
// be called alike. What is too long is cut.
func groupRoleName(group *operatorsv1.OperatorGroup, l level) string {
	sum := sha256.Sum224([]byte(group.Namespace + "/" + group.Name + "/" + string(l)))
	var n big.Int
	digest := n.SetBytes(sum[:]).Text(62)
	rest := fmt.Sprintf(".%s-%s", l, digest)
	return groupRolePrefix + cut(group.Name, maxName-len(groupRolePrefix)-len(rest)) + rest
}

const groupRolePrefix = "olm.og."

func cut(s string, length int) string {
	return s[:min(len(s), length)]
}

// groupLabels say whose a role is. A label holds less than a name may have; of a
// longer one it has the beginning.
func groupLabels(group *operatorsv1.OperatorGroup) map[string]string {
	return map[string]string{
		api.LabelManaged:        "true",
		api.LabelOwner:          ownerLabel(group.Name),
		api.LabelOwnerNamespace: group.Namespace,
		api.LabelOwnerKind:      operatorsv1.OperatorGroupKind,
	}
}

func ownerLabel(name string) string {
	return strings.TrimRight(cut(name, validation.LabelValueMaxLength), "-.")
}

// sameGroupRole reports whether a live role is as wanted. The order of what is
// gathered means nothing, and other labels are others' business.
func sameGroupRole(want, have *rbacv1.ClusterRole) bool {
	if !hasLabels(have, want.Labels) || (want.AggregationRule == nil) != (have.AggregationRule == nil) {
		return false
	}
	if want.AggregationRule == nil {
		return len(have.Rules) == 0
	}
	return slices.Equal(gathered(want), gathered(have))
}

func gathered(role *rbacv1.ClusterRole) []string {
	var selectors []string
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selectors = append(selectors, metav1.FormatLabelSelector(&role.AggregationRule.ClusterRoleSelectors[i]))
	}
	slices.Sort(selectors)
	return slices.Compact(selectors)
}

func hasLabels(have metav1.Object, want map[string]string) bool {
	labels := have.GetLabels()
	for key, value := range want {
		if got, ok := labels[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// leftovers returns, of the roles that say they are of groups of one namespace,
// those whose group is gone. A role counts only if it is also called as roles of
// groups are, by this or an earlier way: a label alone is no reason to delete a
// cluster role. Roles with other names that OLM once made for a group that is
// still there stay: they gather the same, and somebody may have bound them.
func leftovers(groups []operatorsv1.OperatorGroup, labelled []rbacv1.ClusterRole) []*rbacv1.ClusterRole {
	alive := map[string]bool{}
	for i := range groups {
		alive[ownerLabel(groups[i].Name)] = true
	}
	var gone []*rbacv1.ClusterRole
	for i := range labelled {
		role := &labelled[i]
		if owner := role.Labels[api.LabelOwner]; owner != "" && !alive[owner] && calledAfter(role.Name, owner) {
			gone = append(gone, role)
		}
	}
	return gone
}

func calledAfter(role, owner string) bool {
	if strings.HasPrefix(role, groupRolePrefix+owner) {
		return true
	}
	return slices.ContainsFunc(levels(), func(l level) bool { return role == owner+"-"+string(l) })
}

// ofGroupIn reports whether a role says that it is of an OperatorGroup, and of
// which namespace.
func ofGroupIn(role metav1.Object) (namespace string, ok bool) {
	labels := role.GetLabels()
	if labels[api.LabelOwnerKind] != operatorsv1.OperatorGroupKind {
		return "", false
	}
	namespace = labels[api.LabelOwnerNamespace]
	return namespace, namespace != ""
}
