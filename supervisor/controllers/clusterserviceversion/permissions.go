package clusterserviceversion

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

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
		s.Message = "the service account does not exist"
		return s
	}
	s.UUID = string(account.UID)
	if owner := otherOwner(csv, account, c.Others); owner != "" {
		s.Status = operatorsv1alpha1.RequirementStatusReasonPresentNotSatisfied
		s.Message = fmt.Sprintf("the service account is owned by csv %s and would be deleted with it", owner)
		return s
	}
	local, global := c.RBAC.granted(csv.Namespace, name)
	s.Dependents = append(ruleStatuses("namespaced rule:", asked.local, local), ruleStatuses("cluster rule:", asked.global, global)...)
	if missing := unsatisfied(s.Dependents); len(missing) > 0 {
		s.Status = operatorsv1alpha1.RequirementStatusReasonPresentNotSatisfied
		s.Message = fmt.Sprintf("the service account lacks %d of %d policy rules, first %s; "+
			"grant it a role with these rules, or see the InstallPlan for the cause", len(missing), len(s.Dependents), missing[0])
		return s
	}
	s.Status = operatorsv1alpha1.RequirementStatusReasonPresent
	s.Message = "the service account is present"
	return s
}

// otherOwner returns the name of a ClusterServiceVersion that owns a service account that csv does
// not own; empty when there is none. The deletion of that version would delete the account.
func otherOwner(csv *operatorsv1alpha1.ClusterServiceVersion, account metav1.Object, others versions.List) string {
	owner := ""
	for _, ref := range account.GetOwnerReferences() {
		if ref.Kind != operatorsv1alpha1.ClusterServiceVersionKind {
			continue
		}
		if ref.UID == csv.UID {
			return ""
		}
		if other := others.Named(ref.Name); other != nil && other.UID == ref.UID {
			owner = ref.Name
		}
	}
	return owner
}

// unsatisfied returns the messages of the rules that are not granted.
func unsatisfied(rules []operatorsv1alpha1.DependentStatus) []string {
	var out []string
	for _, s := range rules {
		if s.Status != operatorsv1alpha1.DependentStatusReasonSatisfied {
			out = append(out, s.Message)
		}
	}
	return out
}

func ruleStatuses(prefix string, asked, granted []rbacv1.PolicyRule) []operatorsv1alpha1.DependentStatus {
	var out []operatorsv1alpha1.DependentStatus
	for _, rule := range asked {
		s := operatorsv1alpha1.DependentStatus{
			Group: rbacv1.GroupName, Version: "v1", Kind: "PolicyRule",
			Status:  operatorsv1alpha1.DependentStatusReasonSatisfied,
			Message: prefix + ruleText(rule),
		}
		if !covered(rule, granted) {
			s.Status = operatorsv1alpha1.DependentStatusReasonNotSatisfied
		}
		out = append(out, s)
	}
	return out
}

// covered reports whether a rule is granted. It first looks for an equal rule, which is the usual
// case and avoids the comparison of every verb with every resource.
func covered(rule rbacv1.PolicyRule, granted []rbacv1.PolicyRule) bool {
	if slices.ContainsFunc(granted, func(g rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(g, rule) }) {
		return true
	}
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
