package clusterserviceversion

import (
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/serving"
)

// lifted are the cluster roles and bindings that repeat a
// ClusterServiceVersion's namespaced ones, so that its operator may do
// everywhere what it may do at home.
type lifted struct {
	Roles    []*rbacv1.ClusterRole
	Bindings []*rbacv1.ClusterRoleBinding
}

// desiredLift returns what csv needs beyond its own namespace; nothing when its
// OperatorGroup does not target all namespaces. Names are those of the objects
// repeated. Each role may also read namespaces, without which an operator that
// is to serve them all cannot know them. What lets an operator read its certificates
// is for its own namespace, and of a name that others have in theirs.
func desiredLift(csv *operatorsv1alpha1.ClusterServiceVersion, global bool, r rbac) lifted {
	var out lifted
	if !global {
		return out
	}
	certificates := certificateRights(csv)
	for i := range r.Roles {
		if !isOwnedBy(r.Roles[i].Labels, csv) || certificates[r.Roles[i].Name] {
			continue
		}
		out.Roles = append(out.Roles, &rbacv1.ClusterRole{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
			ObjectMeta: metav1.ObjectMeta{Name: r.Roles[i].Name, Labels: liftLabels(csv)},
			Rules: append(slices.Clone(r.Roles[i].Rules), rbacv1.PolicyRule{
				APIGroups: []string{corev1.GroupName}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch"},
			}),
		})
	}
	for i := range r.RoleBindings {
		b := &r.RoleBindings[i]
		if !isOwnedBy(b.Labels, csv) || certificates[b.Name] {
			continue
		}
		out.Bindings = append(out.Bindings, &rbacv1.ClusterRoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: b.Name, Labels: liftLabels(csv)},
			Subjects:   slices.Clone(b.Subjects),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: b.RoleRef.Name},
		})
	}
	return out
}

// certificateRights are the names of the roles and bindings by which csv reads its
// certificates.
func certificateRights(csv *operatorsv1alpha1.ClusterServiceVersion) map[string]bool {
	servers, err := serving.Servers(csv)
	if err != nil {
		// Nothing is served of what is described wrongly.
		return nil
	}
	names := map[string]bool{}
	for _, s := range servers {
		names[s.SecretName()] = true
	}
	return names
}

func liftLabels(csv *operatorsv1alpha1.ClusterServiceVersion) map[string]string {
	labels := owned(csv)
	labels[LabelLifted] = "true"
	return labels
}

// isOwnedBy reports whether an object's labels name csv as its owner.
func isOwnedBy(labels map[string]string, csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	for key, value := range ownerLabels(csv) {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// liftState compares what is desired with what there is. ownerLives says
// whether the ClusterServiceVersion that an object's labels name is there: what
// a vanished one left behind may be taken over, what a living one uses may not.
func liftState(csv *operatorsv1alpha1.ClusterServiceVersion, want lifted, r rbac, ownerLives func(map[string]string) bool) Lift {
	state := Lift{Stale: len(surplus(csv, want, r)) > 0}
	check := func(kind string, have *metav1.ObjectMeta, same bool) {
		switch {
		case have == nil:
			state.Stale = true
		case !isOwnedBy(have.Labels, csv) && ownerLives(have.Labels):
			first(&state.Foreign, foreignLift(kind, have))
		case !sameLift(have.Labels, csv) || !same:
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

// surplus returns the lifted objects of csv that are no longer wanted, bindings
// first: a right is taken away before its definition.
func surplus(csv *operatorsv1alpha1.ClusterServiceVersion, want lifted, r rbac) []metav1.PartialObjectMetadata {
	var out []metav1.PartialObjectMetadata
	for i := range r.ClusterRoleBindings {
		b := &r.ClusterRoleBindings[i]
		wanted := slices.ContainsFunc(want.Bindings, func(w *rbacv1.ClusterRoleBinding) bool { return w.Name == b.Name })
		if sameLift(b.Labels, csv) && !wanted {
			out = append(out, metadataOf("ClusterRoleBinding", b.ObjectMeta))
		}
	}
	for i := range r.ClusterRoles {
		c := &r.ClusterRoles[i]
		wanted := slices.ContainsFunc(want.Roles, func(w *rbacv1.ClusterRole) bool { return w.Name == c.Name })
		if sameLift(c.Labels, csv) && !wanted {
			out = append(out, metadataOf("ClusterRole", c.ObjectMeta))
		}
	}
	return out
}

func sameLift(labels map[string]string, csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	return labels[LabelLifted] == "true" && isOwnedBy(labels, csv)
}

func metadataOf(kind string, meta metav1.ObjectMeta) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Name: meta.Name, UID: meta.UID},
	}
}

func foreignLift(kind string, meta *metav1.ObjectMeta) string {
	owner, ok := labelledOwner(meta.Labels)
	if !ok {
		return serving.Obstacle(kind, meta.Name, "no ClusterServiceVersion")
	}
	return fmt.Sprintf("%s %q exists and belongs to csv %s; for all namespaces an operator can be installed once: uninstall one of the two",
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
