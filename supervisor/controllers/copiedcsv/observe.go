package copiedcsv

import (
	"context"
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/groupindex"
	"github.com/chandlery/chandlery/supervisor/informer"
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
func (r reader) observe(ctx context.Context, key types.NamespacedName) (*observation, error) {
	o := &observation{key: key, protected: r.protected}
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
		if o.allGroups, err = groupindex.Contenders(ctx, r.client, &o.groups[0]); err != nil {
			return nil, err //nolint:wrapcheck // says what was listed
		}
	}
	if o.namespaces, err = r.namespaces(ctx); err != nil {
		return nil, err
	}
	if o.enabled, err = r.enabled(ctx); err != nil {
		return nil, err
	}
	if err := r.readCopies(ctx, o); err != nil {
		return nil, err
	}
	return o, r.readRights(ctx, o)
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
		if !gone(&list.Items[i]) {
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

// readCopies reads the copies of a version and finds other objects with its name.
func (r reader) readCopies(ctx context.Context, o *observation) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind + "List"))
	if err := r.copies.List(ctx, list, client.MatchingFields{indexName: o.key.Name}, readOnly); err != nil {
		return fmt.Errorf("listing copies of ClusterServiceVersions named %s: %w", o.key.Name, err)
	}
	o.copies, o.taken = map[string]*metav1.PartialObjectMetadata{}, map[string]string{}
	for i := range list.Items {
		found := &list.Items[i]
		if found.Namespace == o.key.Namespace {
			// A version's own namespace gets no copy.
			continue
		}
		if from := found.Labels[api.LabelCopiedFrom]; from != o.key.Namespace {
			o.taken[found.Namespace] = "a copy of the ClusterServiceVersion of that name in namespace " + from + " is there"
			continue
		}
		o.copies[found.Namespace] = found
	}
	var others operatorsv1alpha1.ClusterServiceVersionList
	if err := r.client.List(ctx, &others, client.MatchingFields{indexName: o.key.Name}, readOnly); err != nil {
		return fmt.Errorf("listing ClusterServiceVersions named %s: %w", o.key.Name, err)
	}
	for i := range others.Items {
		if other := &others.Items[i]; !isCopied(other) && other.Namespace != o.key.Namespace {
			o.taken[other.Namespace] = "a ClusterServiceVersion of that name is installed there"
		}
	}
	return nil
}

// readRights reads the roles and bindings of a version, and their copies.
func (r reader) readRights(ctx context.Context, o *observation) error {
	owned := client.MatchingLabels{
		api.LabelOwner: o.key.Name, api.LabelOwnerNamespace: o.key.Namespace,
		api.LabelOwnerKind: operatorsv1alpha1.ClusterServiceVersionKind,
	}
	own := []client.ListOption{client.InNamespace(o.key.Namespace), owned, readOnly}
	var (
		roles    rbacv1.RoleList
		bindings rbacv1.RoleBindingList
	)
	if err := r.client.List(ctx, &roles, own...); err != nil {
		return fmt.Errorf("listing Roles in namespace %s: %w", o.key.Namespace, err)
	}
	if err := r.client.List(ctx, &bindings, own...); err != nil {
		return fmt.Errorf("listing RoleBindings in namespace %s: %w", o.key.Namespace, err)
	}
	if err := completeRights(ctx, r.live, roles.Items, bindings.Items); err != nil {
		return err
	}
	for i := range roles.Items {
		if !isCopied(&roles.Items[i]) {
			o.rights.roles = append(o.rights.roles, roles.Items[i])
		}
	}
	for i := range bindings.Items {
		if !isCopied(&bindings.Items[i]) {
			o.rights.bindings = append(o.rights.bindings, bindings.Items[i])
		}
	}
	return r.readGranted(ctx, o)
}

// completeRights reads roles and bindings from the API server if the cache lacks a part of them.
// They are compared and copied as a whole.
func completeRights(ctx context.Context, live client.Reader, roles []rbacv1.Role, bindings []rbacv1.RoleBinding) error {
	if err := informer.Complete(ctx, live, roles, func(*rbacv1.Role) bool { return true }); err != nil {
		return err //nolint:wrapcheck // names the object
	}
	return informer.Complete(ctx, live, bindings, func(*rbacv1.RoleBinding) bool { return true }) //nolint:wrapcheck // names the object
}

func (r reader) readGranted(ctx context.Context, o *observation) error {
	copied := []client.ListOption{client.MatchingFields{indexOwner: o.key.String()}, readOnly}
	var (
		roles    rbacv1.RoleList
		bindings rbacv1.RoleBindingList
	)
	if err := r.client.List(ctx, &roles, copied...); err != nil {
		return fmt.Errorf("listing copied Roles of ClusterServiceVersion %s: %w", o.key, err)
	}
	if err := r.client.List(ctx, &bindings, copied...); err != nil {
		return fmt.Errorf("listing copied RoleBindings of ClusterServiceVersion %s: %w", o.key, err)
	}
	if err := completeRights(ctx, r.live, roles.Items, bindings.Items); err != nil {
		return err
	}
	o.granted = map[string]rights{}
	for i := range roles.Items {
		namespace := roles.Items[i].Namespace
		granted := o.granted[namespace]
		granted.roles = append(granted.roles, roles.Items[i])
		o.granted[namespace] = granted
	}
	for i := range bindings.Items {
		namespace := bindings.Items[i].Namespace
		granted := o.granted[namespace]
		granted.bindings = append(granted.bindings, bindings.Items[i])
		o.granted[namespace] = granted
	}
	return nil
}
