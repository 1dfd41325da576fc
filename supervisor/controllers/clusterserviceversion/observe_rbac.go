package clusterserviceversion

import (
	"context"
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/informer"
	"github.com/chandlery/chandlery/supervisor/rbac/impersonate"
)

const (
	// indexNamespace finds ClusterRoles and ClusterRoleBindings by the namespaces whose versions they
	// concern.
	indexNamespace = "clusterserviceversion/namespace"
	// everyNamespace is the key of objects that concern all namespaces. No namespace has that name.
	everyNamespace = "*"
)

// namespaceKeys returns the namespaces whose versions a ClusterRole or a ClusterRoleBinding
// concerns: the namespace of its owner, and those whose accounts it binds.
func namespaceKeys(o client.Object) []string {
	var keys []string
	if owner := o.GetLabels()[api.LabelOwnerNamespace]; owner != "" {
		keys = append(keys, owner)
	}
	subjects, _ := impersonate.Subjects(o)
	for _, s := range subjects {
		switch namespace, all := impersonate.SubjectNamespace(s); {
		case all:
			keys = append(keys, everyNamespace)
		case namespace != "":
			keys = append(keys, namespace)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// rbacReader reads the RBAC that concerns the versions of a namespace.
type rbacReader struct {
	cached client.Reader
	live   client.Reader
}

// read returns the Roles and RoleBindings of a namespace, and some cluster-scoped objects. These
// bind accounts of the namespace, belong to its versions, or have the name of such an object of the
// namespace.
func (r rbacReader) read(ctx context.Context, namespace string) (rbac, error) {
	var (
		roles    rbacv1.RoleList
		bindings rbacv1.RoleBindingList
	)
	if err := r.cached.List(ctx, &roles, client.InNamespace(namespace), readOnly); err != nil {
		return rbac{}, fmt.Errorf("listing Roles in namespace %s: %w", namespace, err)
	}
	if err := r.cached.List(ctx, &bindings, client.InNamespace(namespace), readOnly); err != nil {
		return rbac{}, fmt.Errorf("listing RoleBindings in namespace %s: %w", namespace, err)
	}
	// Roles and bindings of a version are needed whole. Others may grant its accounts the permissions
	// that it requires.
	if err := informer.Complete(ctx, r.live, roles.Items, func(o *rbacv1.Role) bool { return o.Labels[api.LabelOwner] != "" }); err != nil {
		return rbac{}, err //nolint:wrapcheck // names the object
	}
	if err := informer.Complete(ctx, r.live, bindings.Items, func(o *rbacv1.RoleBinding) bool { return o.Labels[api.LabelOwner] != "" }); err != nil {
		return rbac{}, err //nolint:wrapcheck // names the object
	}
	found := rbac{Roles: roles.Items, RoleBindings: bindings.Items}
	var err error
	if found.ClusterRoleBindings, err = r.clusterRoleBindings(ctx, namespace, bindings.Items); err != nil {
		return rbac{}, err
	}
	found.ClusterRoles, err = r.clusterRoles(ctx, namespace, found)
	return found, err
}

func (r rbacReader) clusterRoleBindings(ctx context.Context, namespace string, local []rbacv1.RoleBinding) ([]rbacv1.ClusterRoleBinding, error) {
	found := map[string]rbacv1.ClusterRoleBinding{}
	for _, key := range []string{namespace, everyNamespace} {
		var list rbacv1.ClusterRoleBindingList
		if err := r.cached.List(ctx, &list, client.MatchingFields{indexNamespace: key}, readOnly); err != nil {
			return nil, fmt.Errorf("listing ClusterRoleBindings for namespace %s: %w", namespace, err)
		}
		for _, b := range list.Items {
			found[b.Name] = b
		}
	}
	var names []string
	for _, b := range local {
		if b.Labels[api.LabelOwner] != "" {
			names = append(names, b.Name)
		}
	}
	err := add(ctx, r.cached, found, names)
	return byName(found), err
}

func (r rbacReader) clusterRoles(ctx context.Context, namespace string, have rbac) ([]rbacv1.ClusterRole, error) {
	found := map[string]rbacv1.ClusterRole{}
	var list rbacv1.ClusterRoleList
	if err := r.cached.List(ctx, &list, client.MatchingFields{indexNamespace: namespace}, readOnly); err != nil {
		return nil, fmt.Errorf("listing ClusterRoles of namespace %s: %w", namespace, err)
	}
	for _, role := range list.Items {
		found[role.Name] = role
	}
	var names []string
	for _, role := range have.Roles {
		if role.Labels[api.LabelOwner] != "" {
			names = append(names, role.Name)
		}
	}
	for _, b := range have.RoleBindings {
		if b.RoleRef.Kind == "ClusterRole" {
			names = append(names, b.RoleRef.Name)
		}
	}
	for _, b := range have.ClusterRoleBindings {
		names = append(names, b.RoleRef.Name)
	}
	err := add(ctx, r.cached, found, names)
	return byName(found), err
}

// add adds the existing objects with some names to found.
func add[T any, P interface {
	*T
	client.Object
}](ctx context.Context, from client.Reader, found map[string]T, names []string) error {
	for _, name := range names {
		if _, has := found[name]; has {
			continue
		}
		var item T
		err := from.Get(ctx, client.ObjectKey{Name: name}, P(&item), readOnly)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("getting %T %s: %w", P(&item), name, err)
		}
		if err == nil {
			found[name] = item
		}
	}
	return nil
}

// byName returns objects in the order of their names.
func byName[T any](found map[string]T) []T {
	items := make([]T, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		items = append(items, found[name])
	}
	return items
}
