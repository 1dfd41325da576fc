package discovery

import (
	"fmt"
	"hash/fnv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// placeholder stands for the name of the user if it is unknown.
const placeholder = "YOUR-USER-NAME"

const (
	serviceAccountPrefix = "system:serviceaccount:"
	// discoveryRole is the ClusterRole of every cluster for users of the discovery API.
	discoveryRole = "system:discovery"
)

// missingPermissions returns the permissions that the user lacks to read the target, as YAML for kubectl apply. They are a
// Role if the target has a namespace, else a ClusterRole. If the user may not use the discovery API, they
// include that permission.
func missingPermissions(t Target, reason Reason, user string) (string, error) {
	var objects []any
	if t.Resource != "" {
		role, binding := readRole(t, user)
		objects = append(objects, role, binding)
	}
	if reason == ReasonMayNotDiscover {
		objects = append(objects, &rbacv1.ClusterRoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: "discover-" + hashOf(user)},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: discoveryRole},
			Subjects:   []rbacv1.Subject{subjectOf(user)},
		})
	}
	documents := make([]string, 0, len(objects))
	for _, object := range objects {
		document, err := yaml.Marshal(object)
		if err != nil {
			return "", fmt.Errorf("encoding the missing RBAC rules: %w", err)
		}
		documents = append(documents, string(document))
	}
	return strings.Join(documents, "---\n"), nil
}

// readRole returns a role that permits reading the target, and its binding to the user.
func readRole(t Target, user string) (role, binding any) {
	name := "read-" + t.Resource
	if t.Group != "" {
		name += "." + t.Group
	}
	version := rbacv1.SchemeGroupVersion.String()
	rules := []rbacv1.PolicyRule{{APIGroups: []string{t.Group}, Resources: []string{t.Resource}, Verbs: []string{"get", "list", "watch"}}}
	roleMeta := metav1.ObjectMeta{Namespace: t.Namespace, Name: name}
	// Each user has a separate binding.
	bindingMeta := metav1.ObjectMeta{Namespace: t.Namespace, Name: name + "-" + hashOf(user)}
	subjects := []rbacv1.Subject{subjectOf(user)}
	if t.Namespace != "" {
		return &rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "Role"}, ObjectMeta: roleMeta, Rules: rules},
			&rbacv1.RoleBinding{
				TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "RoleBinding"}, ObjectMeta: bindingMeta,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, Subjects: subjects,
			}
	}
	return &rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ClusterRole"}, ObjectMeta: roleMeta, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ClusterRoleBinding"}, ObjectMeta: bindingMeta,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, Subjects: subjects,
		}
}

// subjectOf returns a user as the subject of a binding.
func subjectOf(user string) rbacv1.Subject {
	if account, ok := strings.CutPrefix(user, serviceAccountPrefix); ok {
		if namespace, name, ok := strings.Cut(account, ":"); ok {
			return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
		}
	}
	if user == "" {
		user = placeholder
	}
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}
}

// hashOf returns a hash that distinguishes the bindings of users. Names of users may contain characters that
// names of objects may not.
func hashOf(user string) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(user))
	return fmt.Sprintf("%08x", sum.Sum32())
}
