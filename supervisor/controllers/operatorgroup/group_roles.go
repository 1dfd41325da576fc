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
	"github.com/chandlery/chandlery/supervisor/api/providedapis"
)

// maxName is the maximum length of an object's name.
const maxName = validation.DNS1123SubdomainMaxLength

// groupRoles returns the cluster roles of a group, one for each level. Each role aggregates the
// rules of its level for the APIs that the group has claimed. One binding can then grant access to
// all of the group's operators.
//
// The role of a group without claims has an explicitly empty list of rules. Without an aggregation
// rule, Kubernetes would keep the rules that it aggregated before.
func groupRoles(group *operatorsv1.OperatorGroup) []*rbacv1.ClusterRole {
	apis := providedapis.Claimed(group).Sorted()
	roles := make([]*rbacv1.ClusterRole, 0, len(accessLevels()))
	for _, l := range accessLevels() {
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

// groupRoleName returns the name of the role, which is the same as in existing clusters. It
// contains a digest of the group's namespace, its name and the level, because groups in several
// namespaces can have the same name. A long group name is truncated.
func groupRoleName(group *operatorsv1.OperatorGroup, l accessLevel) string {
	sum := sha256.Sum224([]byte(group.Namespace + "/" + group.Name + "/" + string(l)))
	var n big.Int
	digest := n.SetBytes(sum[:]).Text(62)
	rest := fmt.Sprintf(".%s-%s", l, digest)
	return groupRolePrefix + truncate(group.Name, maxName-len(groupRolePrefix)-len(rest)) + rest
}

const groupRolePrefix = "olm.og."

func truncate(s string, length int) string {
	return s[:min(len(s), length)]
}

// groupLabels returns the labels that identify the owner of a role. A label value is shorter than a
// name, so a long name is truncated.
func groupLabels(group *operatorsv1.OperatorGroup) map[string]string {
	return map[string]string{
		api.LabelManaged:        "true",
		api.LabelOwner:          ownerLabel(group.Name),
		api.LabelOwnerNamespace: group.Namespace,
		api.LabelOwnerKind:      operatorsv1.OperatorGroupKind,
	}
}

func ownerLabel(name string) string {
	return strings.TrimRight(truncate(name, validation.LabelValueMaxLength), "-.")
}

// sameGroupRole reports whether a live role matches want. It ignores the order of the selectors and
// additional labels.
func sameGroupRole(want, have *rbacv1.ClusterRole) bool {
	if !hasLabels(have, want.Labels) || (want.AggregationRule == nil) != (have.AggregationRule == nil) {
		return false
	}
	if want.AggregationRule == nil {
		return len(have.Rules) == 0
	}
	return slices.Equal(selectorsOf(want), selectorsOf(have))
}

func selectorsOf(role *rbacv1.ClusterRole) []string {
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

// orphanedRoles returns the roles of deleted groups among the roles with the owner label of a
// namespace. A role only counts if its name has a current or former form of group role names. A
// label alone does not justify the deletion of a cluster role. Roles with other names that OLM
// created for an existing group stay: they aggregate the same rules, and bindings may refer to
// them.
func orphanedRoles(groups []operatorsv1.OperatorGroup, labelled []rbacv1.ClusterRole) []*rbacv1.ClusterRole {
	alive := map[string]bool{}
	for i := range groups {
		alive[ownerLabel(groups[i].Name)] = true
	}
	var orphaned []*rbacv1.ClusterRole
	for i := range labelled {
		role := &labelled[i]
		if owner := role.Labels[api.LabelOwner]; owner != "" && !alive[owner] && isNamedAfter(role.Name, owner) {
			orphaned = append(orphaned, role)
		}
	}
	return orphaned
}

func isNamedAfter(role, owner string) bool {
	if strings.HasPrefix(role, groupRolePrefix+owner) {
		return true
	}
	return slices.ContainsFunc(accessLevels(), func(l accessLevel) bool { return role == owner+"-"+string(l) })
}

// groupNamespaceOf returns the namespace in the owner labels of an OperatorGroup's role. ok is false for
// other roles.
func groupNamespaceOf(role metav1.Object) (namespace string, ok bool) {
	labels := role.GetLabels()
	if labels[api.LabelOwnerKind] != operatorsv1.OperatorGroupKind {
		return "", false
	}
	namespace = labels[api.LabelOwnerNamespace]
	return namespace, namespace != ""
}
