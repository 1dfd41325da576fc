package discovery

import (
	"fmt"
	"hash/fnv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// placeholder stands where the user's name belongs when it is not known.
const placeholder = "YOUR-USER-NAME"

const (
	serviceAccountPrefix = "system:serviceaccount:"
	// discoveryRole is the role that every cluster has for whoever uses the discovery API.
	discoveryRole = "system:discovery"
)

// grant gives the user what keeps the target from being read, as YAML for kubectl apply:
// a Role where one namespace is meant, else a ClusterRole. Where the discovery API may
// not be used either, it gives that as well.
func grant(t Target, reason Reason, user string) (string, error) {
	var objects []any
	if t.Resource != "" {
		role, binding := rightsToRead(t, user)
		objects = append(objects, role, binding)
	}
	if reason == ReasonMayNotDiscover {
		objects = append(objects, &rbacv1.ClusterRoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: "discover-" + mark(user)},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: discoveryRole},
			Subjects:   []rbacv1.Subject{subjectOf(user)},
		})
	}
	documents := make([]string, 0, len(objects))
	for _, object := range objects {
		document, err := yaml.Marshal(object)
		if err != nil {
			return "", fmt.Errorf("writing the rights that are missing: %w", err)
		}
		documents = append(documents, string(document))
	}
	return strings.Join(documents, "---\n"), nil
}

// rightsToRead are a role that may read the target, and what binds it to the user.
func rightsToRead(t Target, user string) (role, binding any) {
	name := "read-" + t.Resource
	if t.Group != "" {
		name += "." + t.Group
	}
	version := rbacv1.SchemeGroupVersion.String()
	rules := []rbacv1.PolicyRule{{APIGroups: []string{t.Group}, Resources: []string{t.Resource}, Verbs: []string{"get", "list", "watch"}}}
	roleMeta := metav1.ObjectMeta{Namespace: t.Namespace, Name: name}
	// Bindings of several users lie side by side.
	bindingMeta := metav1.ObjectMeta{Namespace: t.Namespace, Name: name + "-" + mark(user)}
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

// subjectOf is a user as bindings name it.
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

// mark tells the bindings of one user from those of another: names of users may hold
// what names of objects may not.
func mark(user string) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(user))
	return fmt.Sprintf("%08x", sum.Sum32())
}
