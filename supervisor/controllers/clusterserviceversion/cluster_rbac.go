package clusterserviceversion

import (
	"cmp"
	"fmt"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// clusterRBAC holds the cluster-scoped copies of a ClusterServiceVersion's roles and bindings. They
// grant its operator the permissions of its own namespace in all namespaces.
type clusterRBAC struct {
	Roles    []*rbacv1.ClusterRole
	Bindings []*rbacv1.ClusterRoleBinding
}

// desiredClusterRBAC returns the cluster-scoped copies that csv needs; none when its OperatorGroup does
// not target all namespaces. The copies have the names of the originals.
//
// It copies only roles and bindings that csv declares, whatever labels others have. Otherwise a
// user who may create roles in its namespace could get them in all namespaces. Each copied role may
// also read namespaces, which an operator for all namespaces needs. Roles for certificates are not
// copied: they concern only the version's own namespace, and their names occur in other namespaces
// too.
func desiredClusterRBAC(csv *operatorsv1alpha1.ClusterServiceVersion, global bool, r rbac) clusterRBAC {
	var out clusterRBAC
	if !global {
		return out
	}
	certificates := certificateRoles(csv)
	accounts := map[string][]string{} // by role, the accounts that it is declared for
	for i := range r.Roles {
		role := &r.Roles[i]
		if !ownership.Names(role.Labels, csv) || certificates[role.Name] {
			continue
		}
		rules, named := declaredRules(csv, role, r)
		if len(named) == 0 {
			continue
		}
		accounts[role.Name] = named
		out.Roles = append(out.Roles, &rbacv1.ClusterRole{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
			ObjectMeta: metav1.ObjectMeta{Name: role.Name, Labels: copyLabels(csv)},
			Rules:      append(slices.Clone(rules), readsNamespaces()),
		})
	}
	for i := range r.RoleBindings {
		b := &r.RoleBindings[i]
		if !ownership.Names(b.Labels, csv) || certificates[b.Name] {
			continue
		}
		subjects := declaredSubjects(csv, b, accounts[b.RoleRef.Name], r)
		if len(subjects) == 0 {
			continue
		}
		out.Bindings = append(out.Bindings, &rbacv1.ClusterRoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: b.Name, Labels: copyLabels(csv)},
			Subjects:   slices.Clone(subjects),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: b.RoleRef.Name},
		})
	}
	return out
}

// readsNamespaces returns the rule that every copied role has in addition.
func readsNamespaces() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{corev1.GroupName}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch"}}
}

// declaredRules returns the rules of a role to copy and the accounts that they are declared for. It
// returns none for a role that csv does not declare. A role that was changed after it was copied
// keeps its former copy.
func declaredRules(csv *operatorsv1alpha1.ClusterServiceVersion, role *rbacv1.Role, r rbac) ([]rbacv1.PolicyRule, []string) {
	if accounts := plansteps.DeclaredFor(csv, role.Rules); len(accounts) > 0 {
		return role.Rules, accounts
	}
	meta, rules := roleNamed(r.ClusterRoles, role.Name)
	if meta == nil || !isCopy(meta.Labels, csv) || len(rules) == 0 {
		return nil, nil
	}
	before := rules[:len(rules)-1]
	return before, plansteps.DeclaredFor(csv, before)
}

// declaredSubjects returns the subjects of a copied binding, with the accounts that its role is
// declared for. It returns nil for a binding with other subjects. A binding that was changed after
// it was copied keeps its former subjects.
func declaredSubjects(csv *operatorsv1alpha1.ClusterServiceVersion, b *rbacv1.RoleBinding, accounts []string, r rbac) []rbacv1.Subject {
	if plansteps.BindsRole(b, accounts) {
		return b.Subjects
	}
	meta, before := bindingNamed(r.ClusterRoleBindings, b.Name)
	if b.RoleRef.Kind == "Role" && meta != nil && isCopy(meta.Labels, csv) && plansteps.AreAccounts(before, csv.Namespace, accounts) {
		return before
	}
	return nil
}

// certificateRoles returns the names of the roles and bindings with which csv reads its
// certificates.
func certificateRoles(csv *operatorsv1alpha1.ClusterServiceVersion) map[string]bool {
	servers, err := webhook.Servers(csv)
	if err != nil {
		// Invalid descriptions are not served.
		return nil
	}
	names := map[string]bool{}
	for _, s := range servers {
		names[s.SecretName()] = true
	}
	return names
}

func copyLabels(csv *operatorsv1alpha1.ClusterServiceVersion) map[string]string {
	labels := ownership.ManagedLabels(csv)
	labels[api.LabelLifted] = "true"
	return labels
}

// clusterRBACState compares the desired objects with the existing ones. ownerExists reports whether the
// ClusterServiceVersion in the labels of an object exists. An object of a deleted version may be
// taken over; one of an existing version may not.
func clusterRBACState(csv *operatorsv1alpha1.ClusterServiceVersion, want clusterRBAC, r rbac, ownerExists func(map[string]string) bool) phase.ClusterRBAC {
	state := phase.ClusterRBAC{Stale: len(obsoleteCopies(csv, want, r)) > 0}
	check := func(kind string, have *metav1.ObjectMeta, same bool) {
		switch {
		case have == nil:
			state.Stale = true
		case !ownership.Names(have.Labels, csv) && ownerExists(have.Labels):
			state.OwnerConflict = cmp.Or(state.OwnerConflict, copyOwnerConflict(kind, have))
		case !isCopy(have.Labels, csv) || !same:
			state.Stale = true
		}
	}
	for _, role := range want.Roles {
		meta, rules := roleNamed(r.ClusterRoles, role.Name)
		check("ClusterRole", meta, equality.Semantic.DeepEqual(rules, role.Rules))
	}
	for _, binding := range want.Bindings {
		meta, subjects := bindingNamed(r.ClusterRoleBindings, binding.Name)
		check("ClusterRoleBinding", meta, equality.Semantic.DeepEqual(subjects, binding.Subjects))
	}
	return state
}

// hasRoleCopy reports whether the wanted copy of a role exists.
func hasRoleCopy(csv *operatorsv1alpha1.ClusterServiceVersion, want *rbacv1.ClusterRole, r rbac) bool {
	meta, rules := roleNamed(r.ClusterRoles, want.Name)
	return meta != nil && isCopy(meta.Labels, csv) && equality.Semantic.DeepEqual(rules, want.Rules)
}

// hasBindingCopy reports whether the wanted copy of a binding exists.
func hasBindingCopy(csv *operatorsv1alpha1.ClusterServiceVersion, want *rbacv1.ClusterRoleBinding, r rbac) bool {
	meta, subjects := bindingNamed(r.ClusterRoleBindings, want.Name)
	return meta != nil && isCopy(meta.Labels, csv) && equality.Semantic.DeepEqual(subjects, want.Subjects)
}

// obsoleteCopies returns the copies of csv that are no longer wanted. Bindings come first: they are
// deleted before their roles.
func obsoleteCopies(csv *operatorsv1alpha1.ClusterServiceVersion, want clusterRBAC, r rbac) []metav1.PartialObjectMetadata {
	var out []metav1.PartialObjectMetadata
	for i := range r.ClusterRoleBindings {
		b := &r.ClusterRoleBindings[i]
		wanted := slices.ContainsFunc(want.Bindings, func(w *rbacv1.ClusterRoleBinding) bool { return w.Name == b.Name })
		if isCopy(b.Labels, csv) && !wanted {
			out = append(out, metadataOf("ClusterRoleBinding", b.ObjectMeta))
		}
	}
	for i := range r.ClusterRoles {
		c := &r.ClusterRoles[i]
		wanted := slices.ContainsFunc(want.Roles, func(w *rbacv1.ClusterRole) bool { return w.Name == c.Name })
		if isCopy(c.Labels, csv) && !wanted {
			out = append(out, metadataOf("ClusterRole", c.ObjectMeta))
		}
	}
	return out
}

func isCopy(labels map[string]string, csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	return labels[api.LabelLifted] == "true" && ownership.Names(labels, csv)
}

func metadataOf(kind string, meta metav1.ObjectMeta) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion},
	}
}

func copyOwnerConflict(kind string, meta *metav1.ObjectMeta) string {
	owner, ok := ownership.Of(meta.Labels)
	if !ok {
		return webhook.ConflictMessage(kind, meta.Name, "no ClusterServiceVersion")
	}
	return fmt.Sprintf("%s %q exists and belongs to csv %s; an operator for all namespaces can be installed only once: remove one of the two",
		kind, meta.Name, owner)
}

func roleNamed(roles []rbacv1.ClusterRole, name string) (*metav1.ObjectMeta, []rbacv1.PolicyRule) {
	for i := range roles {
		if roles[i].Name == name {
			return &roles[i].ObjectMeta, roles[i].Rules
		}
	}
	return nil, nil
}

func bindingNamed(bindings []rbacv1.ClusterRoleBinding, name string) (*metav1.ObjectMeta, []rbacv1.Subject) {
	for i := range bindings {
		if bindings[i].Name == name {
			return &bindings[i].ObjectMeta, bindings[i].Subjects
		}
	}
	return nil, nil
}

// isGlobal reports whether the operator group targets all namespaces.
func isGlobal(groups []operatorsv1.OperatorGroup) bool {
	return len(groups) == 1 && len(groups[0].Status.Namespaces) == 1 && groups[0].Status.Namespaces[0] == ""
}
