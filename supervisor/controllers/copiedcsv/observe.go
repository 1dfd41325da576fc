package copiedcsv

import (
	"context"
	"fmt"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/informer"
	"github.com/chandlery/chandlery/supervisor/informer/groupindex"
)

// configName is the name of the only OLMConfig that is used.
const configName = "cluster"

// readOnly avoids copies of objects that are only read.
const readOnly = client.UnsafeDisableDeepCopy

// reader reads the inputs of decisions from caches.
type reader struct {
	// client reads the manager's cache, which excludes copies.
	client client.Reader
	// live reads from the API server.
	live client.Reader
	// copies reads the cache of copies, as metadata.
	copies client.Reader
	// protected are the namespaces that get copies in any case.
	protected []string
}

// observe reads the inputs of the decision about a version.
func (r reader) observe(ctx context.Context, key types.NamespacedName) (*input, error) {
	o := &input{key: key, protected: r.protected}
	var err error
	if o.origin, err = r.origin(ctx, key); err != nil {
		return nil, err
	}
	var groups operatorsv1.OperatorGroupList
	if err := r.client.List(ctx, &groups, client.InNamespace(key.Namespace), readOnly); err != nil {
		return nil, fmt.Errorf("listing OperatorGroups in namespace %s: %w", key.Namespace, err)
	}
	o.groups = groups.Items
	if len(o.groups) == 1 {
		if o.allGroups, err = groupindex.Competing(ctx, r.client, &o.groups[0]); err != nil {
			return nil, err //nolint:wrapcheck // says what was listed
		}
	}
	if o.namespaces, err = r.namespaces(ctx); err != nil {
		return nil, err
	}
	if o.enabled, err = r.enabled(ctx); err != nil {
		return nil, err
	}
	if o.copies, o.conflicts, err = r.listCopies(ctx, key); err != nil {
		return nil, err
	}
	if o.origin != nil {
		if o.rbac, err = r.ownRBAC(ctx, o.origin); err != nil {
			return nil, err
		}
	}
	o.granted, err = r.copiedRBAC(ctx, key, o.copies)
	return o, err
}

// origin returns a version; nil if there is none with that name, or only a copy.
func (r reader) origin(ctx context.Context, key types.NamespacedName) (*operatorsv1alpha1.ClusterServiceVersion, error) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := r.client.Get(ctx, key, csv, readOnly); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil //nolint:nilnil // The doc comment says what nil means.
		}
		return nil, fmt.Errorf("getting ClusterServiceVersion %s: %w", key, err)
	}
	if isCopied(csv) {
		return nil, nil //nolint:nilnil // The doc comment says what nil means.
	}
	return csv, nil
}

// namespaces returns the names of the namespaces that exist and are not being deleted.
func (r reader) namespaces(ctx context.Context) (sets.Set[string], error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := r.client.List(ctx, list, readOnly); err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	names := make(sets.Set[string], len(list.Items))
	for i := range list.Items {
		if !isDeleting(&list.Items[i]) {
			names.Insert(list.Items[i].Name)
		}
	}
	return names, nil
}

// enabled reports whether versions that serve all namespaces are copied.
func (r reader) enabled(ctx context.Context) (bool, error) {
	config := &operatorsv1.OLMConfig{}
	switch err := r.client.Get(ctx, types.NamespacedName{Name: configName}, config, readOnly); {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("getting OLMConfig %s: %w", configName, err)
	}
	return config.CopiedCSVsAreEnabled(), nil
}

// listCopies returns the copies of a version by namespace, and descriptions of other objects with its
// name.
func (r reader) listCopies(
	ctx context.Context, key types.NamespacedName,
) (copies map[string]*metav1.PartialObjectMetadata, taken map[string]string, err error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind + "List"))
	if err := r.copies.List(ctx, list, client.MatchingFields{indexName: key.Name}, readOnly); err != nil {
		return nil, nil, fmt.Errorf("listing copies of ClusterServiceVersions named %s: %w", key.Name, err)
	}
	copies, taken = map[string]*metav1.PartialObjectMetadata{}, map[string]string{}
	for i := range list.Items {
		found := &list.Items[i]
		if found.Namespace == key.Namespace {
			// A version's own namespace gets no copy.
			continue
		}
		if from := found.Labels[api.LabelCopiedFrom]; from != key.Namespace {
			taken[found.Namespace] = "a copy of the ClusterServiceVersion with this name in namespace " + from + " exists"
			continue
		}
		copies[found.Namespace] = found
	}
	var others operatorsv1alpha1.ClusterServiceVersionList
	if err := r.client.List(ctx, &others, client.MatchingFields{indexName: key.Name}, readOnly); err != nil {
		return nil, nil, fmt.Errorf("listing ClusterServiceVersions named %s: %w", key.Name, err)
	}
	for i := range others.Items {
		if other := &others.Items[i]; !isCopied(other) && other.Namespace != key.Namespace {
			taken[other.Namespace] = "a ClusterServiceVersion with this name is installed there"
		}
	}
	return copies, taken, nil
}

// ownRBAC returns the roles and bindings of a version in its own namespace.
func (r reader) ownRBAC(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) (rbac, error) {
	owned := client.MatchingLabels{
		api.LabelOwner: csv.Name, api.LabelOwnerNamespace: csv.Namespace,
		api.LabelOwnerKind: operatorsv1alpha1.ClusterServiceVersionKind,
	}
	own := []client.ListOption{client.InNamespace(csv.Namespace), owned, readOnly}
	var (
		roles    rbacv1.RoleList
		bindings rbacv1.RoleBindingList
	)
	if err := r.client.List(ctx, &roles, own...); err != nil {
		return rbac{}, fmt.Errorf("listing Roles in namespace %s: %w", csv.Namespace, err)
	}
	if err := r.client.List(ctx, &bindings, own...); err != nil {
		return rbac{}, fmt.Errorf("listing RoleBindings in namespace %s: %w", csv.Namespace, err)
	}
	var found rbac
	for i := range roles.Items {
		if !isCopied(&roles.Items[i]) {
			found.roles = append(found.roles, roles.Items[i])
		}
	}
	for i := range bindings.Items {
		if !isCopied(&bindings.Items[i]) {
			found.bindings = append(found.bindings, bindings.Items[i])
		}
	}
	return found, completeDeclared(ctx, r.live, csv, found.roles)
}

// maxLargeRoles is the maximum number of large roles of a version that are read from the API server in
// one pass.
const maxLargeRoles = 32

// completeDeclared sets the rules of the roles whose rules the cache lacks, if the version declares the
// rules. It holds one whole role at a time, and the roles share the rules of the version. Their number
// therefore takes no memory.
//
// Roles beyond maxLargeRoles count as not declared, and so do bindings whose subjects the cache lacks: a
// declared binding has one subject. Copies of these stay unchanged.
func completeDeclared(ctx context.Context, live client.Reader, csv *operatorsv1alpha1.ClusterServiceVersion, roles []rbacv1.Role) error {
	reads := 0
	for i := range roles {
		role := &roles[i]
		if !informer.Trimmed(role) || len(role.Rules) > 0 {
			continue
		}
		if reads == maxLargeRoles {
			return nil
		}
		reads++
		whole := &rbacv1.Role{}
		err := live.Get(ctx, client.ObjectKeyFromObject(role), whole)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading the whole of Role %s/%s: %w", role.Namespace, role.Name, err)
		}
		for _, p := range csv.Spec.InstallStrategy.StrategySpec.Permissions {
			if equality.Semantic.DeepEqual(p.Rules, whole.Rules) {
				role.Rules = p.Rules
			}
		}
	}
	return nil
}

// copiedRBAC returns the copied roles and bindings of a version by namespace. The cache may lack a
// part of them.
func (r reader) copiedRBAC(ctx context.Context, key types.NamespacedName, copies map[string]*metav1.PartialObjectMetadata) (map[string]rbac, error) {
	copied := []client.ListOption{client.MatchingFields{indexOwner: key.String()}, readOnly}
	var (
		roles    rbacv1.RoleList
		bindings rbacv1.RoleBindingList
	)
	if err := r.client.List(ctx, &roles, copied...); err != nil {
		return nil, fmt.Errorf("listing copied Roles of ClusterServiceVersion %s: %w", key, err)
	}
	if err := r.client.List(ctx, &bindings, copied...); err != nil {
		return nil, fmt.Errorf("listing copied RoleBindings of ClusterServiceVersion %s: %w", key, err)
	}
	found := map[string]rbac{}
	for i := range roles.Items {
		role := &roles.Items[i]
		if ownedByCopy(role, copies[role.Namespace]) {
			in := found[role.Namespace]
			in.roles = append(in.roles, *role)
			found[role.Namespace] = in
		}
	}
	for i := range bindings.Items {
		b := &bindings.Items[i]
		if ownedByCopy(b, copies[b.Namespace]) {
			in := found[b.Namespace]
			in.bindings = append(in.bindings, *b)
			found[b.Namespace] = in
		}
	}
	return found, nil
}

// ownedByCopy reports whether the copy of a version in a namespace owns a role or binding there. Labels
// alone are no proof: users of any namespace can set them. Kubernetes deletes a role whose owner is gone.
func ownedByCopy(obj metav1.Object, copied *metav1.PartialObjectMetadata) bool {
	return copied != nil && slices.ContainsFunc(obj.GetOwnerReferences(),
		func(ref metav1.OwnerReference) bool { return ref.UID == copied.UID })
}
