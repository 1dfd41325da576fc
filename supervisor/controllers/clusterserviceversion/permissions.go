package clusterserviceversion

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
	"github.com/chandlery/chandlery/supervisor/rbac/impersonate"
)

// rbac holds the roles and bindings of a namespace, and those of the cluster.
type rbac struct {
	Roles               []rbacv1.Role
	RoleBindings        []rbacv1.RoleBinding
	ClusterRoles        []rbacv1.ClusterRole
	ClusterRoleBindings []rbacv1.ClusterRoleBinding
}

// granted returns the rules that a service account has in its namespace, and
// the rules that it has in all namespaces. The former include the latter.
func (r rbac) granted(namespace, account string) (local, global []rbacv1.PolicyRule) {
	for i := range r.ClusterRoleBindings {
		b := &r.ClusterRoleBindings[i]
		if impersonate.IsBound(b.Subjects, namespace, account) {
			global = append(global, r.rules(b.RoleRef)...)
		}
	}
	local = slices.Clone(global)
	for i := range r.RoleBindings {
		b := &r.RoleBindings[i]
		if impersonate.IsBound(b.Subjects, namespace, account) {
			local = append(local, r.rules(b.RoleRef)...)
		}
	}
	return local, global
}

func (r rbac) rules(ref rbacv1.RoleRef) []rbacv1.PolicyRule {
	if ref.Kind == "Role" {
		for i := range r.Roles {
			if r.Roles[i].Name == ref.Name {
				return r.Roles[i].Rules
			}
		}
		return nil
	}
	for i := range r.ClusterRoles {
		if r.ClusterRoles[i].Name == ref.Name {
			return r.ClusterRoles[i].Rules
		}
	}
	return nil
}

// needs are the rules that a ClusterServiceVersion requires for one of its service accounts.
type needs struct {
	local, global []rbacv1.PolicyRule
}

// accountNeeds returns the required rules by service account.
func accountNeeds(csv *operatorsv1alpha1.ClusterServiceVersion) map[string]*needs {
	out := map[string]*needs{}
	of := func(account string) *needs {
		if out[account] == nil {
			out[account] = &needs{}
		}
		return out[account]
	}
	strategy := csv.Spec.InstallStrategy.StrategySpec
	for _, p := range strategy.Permissions {
		n := of(p.ServiceAccountName)
		n.local = append(n.local, p.Rules...)
	}
	for _, p := range strategy.ClusterPermissions {
		n := of(p.ServiceAccountName)
		n.global = append(n.global, p.Rules...)
	}
	return out
}

func serviceAccounts(csv *operatorsv1alpha1.ClusterServiceVersion, c cluster) []operatorsv1alpha1.RequirementStatus {
	asked := accountNeeds(csv)
	var out []operatorsv1alpha1.RequirementStatus
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		out = append(out, accountStatus(csv, name, *asked[name], c))
	}
	return out
}

func accountStatus(csv *operatorsv1alpha1.ClusterServiceVersion, name string, asked needs, c cluster) operatorsv1alpha1.RequirementStatus {
	s := operatorsv1alpha1.RequirementStatus{Version: "v1", Kind: "ServiceAccount", Name: name}
	account := c.Accounts[name]
	if account == nil {
		s.Status = operatorsv1alpha1.RequirementStatusReasonNotPresent
		s.Message = olmtext.ServiceAccountMissing
		return s
	}
	s.UUID = string(account.UID)
	if otherOwner(csv, account, c.Others) {
		s.Status = operatorsv1alpha1.RequirementStatusReasonPresentNotSatisfied
		s.Message = olmtext.ServiceAccountOwned
		return s
	}
	local, global := c.RBAC.granted(csv.Namespace, name)
	s.Dependents = append(ruleStatuses(olmtext.NamespacedRule, asked.local, local), ruleStatuses(olmtext.ClusterRule, asked.global, global)...)
	s.Status = operatorsv1alpha1.RequirementStatusReasonPresent
	if slices.ContainsFunc(s.Dependents, unsatisfied) {
		s.Status = operatorsv1alpha1.RequirementStatusReasonPresentNotSatisfied
		s.Message = olmtext.ServiceAccountLacksRule
	}
	return s
}

// otherOwner reports whether another ClusterServiceVersion owns a service account that csv does not own.
// The deletion of that version would delete the account.
func otherOwner(csv *operatorsv1alpha1.ClusterServiceVersion, account metav1.Object, others versions.List) bool {
	owned := false
	for _, ref := range account.GetOwnerReferences() {
		if ref.Kind != operatorsv1alpha1.ClusterServiceVersionKind {
			continue
		}
		if ref.UID == csv.UID {
			return false
		}
		if other := others.Named(ref.Name); other != nil && other.UID == ref.UID {
			owned = true
		}
	}
	return owned
}

func unsatisfied(s operatorsv1alpha1.DependentStatus) bool {
	return s.Status != operatorsv1alpha1.DependentStatusReasonSatisfied
}

// A rule of a few KB can stand for a billion combinations of groups, resources, verbs and names, and the comparison lists
// them all. Beyond these limits, a rule that is not granted literally counts as not satisfied.
const (
	// maxCombinations is the largest number of combinations of one rule.
	maxCombinations = 100_000
	// maxComparisons is the largest number of comparisons of combinations with granted rules, for one account of a version.
	maxComparisons = 2_000_000
)

// ruleStatuses returns for each asked rule whether it is granted. Most are granted literally, which needs no comparison.
func ruleStatuses(prefix string, asked, granted []rbacv1.PolicyRule) []operatorsv1alpha1.DependentStatus {
	if len(asked) == 0 {
		return nil
	}
	literal := make(map[string]bool, len(granted))
	for _, rule := range granted {
		literal[ruleText(rule)] = true
	}
	out := make([]operatorsv1alpha1.DependentStatus, 0, len(asked))
	comparisons := 0.0
	for _, rule := range asked {
		text := ruleText(rule)
		s := operatorsv1alpha1.DependentStatus{
			Group: rbacv1.GroupName, Version: "v1", Kind: "PolicyRule",
			Status:  operatorsv1alpha1.DependentStatusReasonSatisfied,
			Message: prefix + text,
		}
		if !literal[text] {
			n := combinations(rule)
			comparisons += n * float64(len(granted))
			if n > maxCombinations || comparisons > maxComparisons || !covered(rule, granted) {
				s.Status = operatorsv1alpha1.DependentStatusReasonNotSatisfied
			}
		}
		out = append(out, s)
	}
	return out
}

// combinations returns the number of permissions that a rule stands for. It can exceed any integer type.
func combinations(rule rbacv1.PolicyRule) float64 {
	resources := float64(len(rule.APIGroups)) * float64(len(rule.Resources)) * float64(max(1, len(rule.ResourceNames)))
	return float64(len(rule.Verbs)) * (resources + float64(len(rule.NonResourceURLs)))
}

// covered reports whether a rule is granted by several rules together.
func covered(rule rbacv1.PolicyRule, granted []rbacv1.PolicyRule) bool {
	ok, _ := validation.Covers(granted, []rbacv1.PolicyRule{rule})
	return ok
}

func ruleText(rule rbacv1.PolicyRule) string {
	text, err := json.Marshal(rule)
	if err != nil {
		return fmt.Sprintf("%+v", rule)
	}
	return string(text)
}
