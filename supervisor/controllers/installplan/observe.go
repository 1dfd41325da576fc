package installplan

import (
	"context"
	"fmt"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// readOnly makes a read from the cache return shared objects instead of copies.
const readOnly = client.UnsafeDisableDeepCopy

// observeNamespace returns whether, and with which account, plans can be executed in a namespace. A
// namespace needs exactly one OperatorGroup.
//
// OperatorGroups are read with groups. Before a write, that is the API server: a cache may still
// hold a group that names another account.
func observeNamespace(ctx context.Context, groups, cached client.Reader, namespace string) (namespaceState, error) {
	list := &operatorsv1.OperatorGroupList{}
	if err := groups.List(ctx, list, client.InNamespace(namespace), readOnly); err != nil {
		return namespaceState{}, fmt.Errorf("listing OperatorGroups of namespace %s: %w", namespace, err)
	}
	switch n := len(list.Items); n {
	case 1:
	case 0:
		return namespaceState{problem: olmtext.NoGroupForPlan}, nil
	default:
		return namespaceState{problem: olmtext.SeveralGroupsForPlan(n)}, nil
	}
	group := &list.Items[0]
	if group.Spec.ServiceAccountName == "" {
		return namespaceState{unbounded: targetsAll(group)}, nil
	}
	a := &account{
		name:  types.NamespacedName{Namespace: namespace, Name: group.Spec.ServiceAccountName},
		group: client.ObjectKeyFromObject(group),
	}
	found := accountMetadata()
	if err := cached.Get(ctx, a.name, found); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return namespaceState{}, fmt.Errorf("reading ServiceAccount %s: %w", a.name, err)
		}
		return namespaceState{problem: olmtext.AccountMissing(a.name.Name, a.group.String()), account: a}, nil
	}
	a.uid = found.UID
	return namespaceState{account: a}, nil
}

// withAccountOf returns the state of the namespace with the account that another client set in the status of a
// plan, where the OperatorGroup names none.
func (r *reconciler) withAccountOf(ctx context.Context, p *operatorsv1alpha1.InstallPlan, state namespaceState) (namespaceState, error) {
	ref := p.Status.AttenuatedServiceAccountRef
	if ref == nil || state.account != nil || state.problem != "" {
		return state, nil
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.InstallPlanKind))
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(p), live); err != nil {
		return namespaceState{}, fmt.Errorf("reading who named the account of InstallPlan %s/%s: %w", p.Namespace, p.Name, err)
	}
	if !setByOthers(live.ManagedFields) {
		return state, nil
	}
	a := &account{name: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, uid: ref.UID}
	if a.name.Namespace != p.Namespace {
		return namespaceState{problem: fmt.Sprintf("status.attenuatedServiceAccountRef names ServiceAccount %s of another namespace; remove it", a.name), account: a}, nil
	}
	return namespaceState{account: a}, nil
}

// isReferenced reports whether a Subscription refers to a plan. It also reports true for a plan that has
// no Subscription as owner.
func isReferenced(ctx context.Context, cached client.Reader, p *operatorsv1alpha1.InstallPlan) (bool, error) {
	list := &operatorsv1alpha1.SubscriptionList{}
	if err := cached.List(ctx, list, client.InNamespace(p.Namespace), readOnly); err != nil {
		return false, err //nolint:wrapcheck // the cache fails only while it stops
	}
	for i := range list.Items {
		if ref := list.Items[i].Status.InstallPlanRef; ref != nil && ref.UID == p.UID {
			return true, nil
		}
	}
	return !slices.ContainsFunc(p.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return ref.Kind == operatorsv1alpha1.SubscriptionKind
	}), nil
}

// observer reads what a pass needs to know of the cluster.
type observer struct {
	// cached reads what the controller watches.
	cached client.Reader
	// live reads from the API server with the supervisor's own permissions.
	live      client.Reader
	content   *content
	namespace string
}

// get reads an object from the API server; it returns nil when there is none.
func (o *observer) get(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	if err := o.live.Get(ctx, key, u); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil //nolint:nilnil // the doc comment says what nil means
		}
		return nil, fmt.Errorf("%w %s %s: %w", errOwnRead, kind.Kind, key.Name, err)
	}
	return u, nil
}

// definition reads a CustomResourceDefinition; it returns nil when there is none.
func (o *observer) definition(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	return o.get(ctx, kindOfCRDs(), client.ObjectKey{Name: name})
}

// version reads a ClusterServiceVersion of the namespace from the API server. It returns
// errOwnerDeleted for a version that is being deleted: its finalizer may miss objects that are created
// now.
func (o *observer) version(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	live, err := o.get(ctx, kindOfVersions(), client.ObjectKey{Namespace: o.namespace, Name: name})
	switch {
	case err != nil:
		return nil, err
	case live == nil:
		return nil, fmt.Errorf("%w: %s was deleted before its plan was complete; the supervisor starts over", errOwnerDeleted, name)
	case live.GetDeletionTimestamp() != nil:
		return nil, fmt.Errorf("%w: %s is being deleted before its plan was complete; the supervisor starts over", errOwnerDeleted, name)
	case live.GetLabels()[operatorsv1alpha1.CopiedLabelKey] != "":
		return nil, &copyError{plansteps.CopiedVersionError{Namespace: o.namespace, Name: name, From: live.GetLabels()[operatorsv1alpha1.CopiedLabelKey]}}
	}
	return live, nil
}

// versions returns the ClusterServiceVersions of the namespace.
func (o *observer) versions(ctx context.Context) ([]operatorsv1alpha1.ClusterServiceVersion, error) {
	list := &operatorsv1alpha1.ClusterServiceVersionList{}
	if err := o.cached.List(ctx, list, client.InNamespace(o.namespace), readOnly); err != nil {
		return nil, fmt.Errorf("listing ClusterServiceVersions of namespace %s: %w", o.namespace, err)
	}
	return list.Items, nil
}

// isSubscribed reports whether the namespace has a Subscription of a package.
func (o *observer) isSubscribed(ctx context.Context, pkg string) (bool, error) {
	list := &operatorsv1alpha1.SubscriptionList{}
	if err := o.cached.List(ctx, list, client.InNamespace(o.namespace), readOnly); err != nil {
		return false, fmt.Errorf("listing Subscriptions of namespace %s: %w", o.namespace, err)
	}
	return slices.ContainsFunc(list.Items, func(s operatorsv1alpha1.Subscription) bool {
		return s.Spec != nil && s.Spec.Package == pkg && s.DeletionTimestamp.IsZero()
	}), nil
}

// existingOwner returns the version with a key; nil when it no longer exists.
func (o *observer) existingOwner(ctx context.Context, c ownerKey) (*metav1.PartialObjectMetadata, error) {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(kindOfVersions())
	if err := o.live.Get(ctx, c.NamespacedName, found); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil //nolint:nilnil // the doc comment says what nil means
		}
		return nil, fmt.Errorf("%w ClusterServiceVersion %s, which owns the object: %w", errOwnRead, c.NamespacedName, err)
	}
	if c.uid != "" && c.uid != found.UID {
		return nil, nil //nolint:nilnil // the owner was another one of that name
	}
	return found, nil
}

// bundleCRD returns the CustomResourceDefinition of a step, without the live one.
func (o *observer) bundleCRD(ctx context.Context, s *operatorsv1alpha1.Step) (crdState, error) {
	u, err := o.content.manifest(ctx, s)
	if err != nil {
		return crdState{}, err
	}
	csv, err := o.content.version(ctx, s.Resolving)
	if err == nil && csv == nil && s.Resolving != "" {
		csv, err = o.get(ctx, kindOfVersions(), client.ObjectKey{Namespace: o.namespace, Name: s.Resolving})
	}
	if err != nil {
		return crdState{}, fmt.Errorf("reading ClusterServiceVersion %s for the webhook that converts: %w", s.Resolving, err)
	}
	return crdState{name: u.GetName(), version: types.NamespacedName{Namespace: o.namespace, Name: s.Resolving}, csv: csv, bundle: u}, nil
}

// withLive returns a state with the live CustomResourceDefinition.
func (o *observer) withLive(ctx context.Context, state crdState) (*crdState, error) {
	live, err := o.definition(ctx, state.name)
	if err != nil {
		return nil, err
	}
	state.live = live
	if live != nil {
		state.recorded, err = o.recorded(ctx, live)
	}
	return &state, err
}

// crdMetadata reads the metadata of a CustomResourceDefinition; it returns nil when there is none.
func (o *observer) crdMetadata(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(kindOfCRDs())
	if err := o.live.Get(ctx, client.ObjectKey{Name: name}, found); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil //nolint:nilnil // the doc comment says what nil means
		}
		return nil, fmt.Errorf("%w %s %s: %w", errOwnRead, kindCRD, name, err)
	}
	return found, nil
}

// recorded returns the versions that a definition was installed with. There may be thousands. It
// reads only those from the API server that the cache lacks.
func (o *observer) recorded(ctx context.Context, crd metav1.Object) ([]recordedVersion, error) {
	names := plansteps.InstalledAlongside(crd)
	list, known := make([]recordedVersion, 0, len(names)), packages{}
	cached := &operatorsv1alpha1.ClusterServiceVersion{}
	for _, name := range names {
		r := recordedVersion{NamespacedName: name}
		err := o.cached.Get(ctx, name, cached, readOnly)
		switch {
		case err == nil:
			r.exists, r.pkg, r.labels = true, known.of(cached), cached.Labels
			if cached.DeletionTimestamp.IsZero() {
				r.version = cached.Spec.Version.Version
			}
		case client.IgnoreNotFound(err) != nil:
			return nil, fmt.Errorf("%w ClusterServiceVersion %s, which has the same definition: %w", errOwnRead, name, err)
		default:
			live, err := o.existingOwner(ctx, ownerKey{NamespacedName: name})
			if err != nil {
				return nil, err
			}
			if live != nil {
				r.exists, r.pkg, r.labels = true, known.of(live), live.Labels
				break
			}
			planned, err := o.isPlanned(ctx, name)
			if err != nil {
				return nil, err
			}
			if !planned {
				r.stale = plansteps.InstalledAlongsideKeys(crd, name)
			}
		}
		list = append(list, r)
	}
	return list, nil
}

// isPlanned reports whether an InstallPlan is installing a version. The plan recreates a version
// that is deleted before the plan is complete.
func (o *observer) isPlanned(ctx context.Context, version types.NamespacedName) (bool, error) {
	plans := &operatorsv1alpha1.InstallPlanList{}
	if err := o.cached.List(ctx, plans, client.InNamespace(version.Namespace), readOnly); err != nil {
		return false, fmt.Errorf("listing InstallPlans of namespace %s: %w", version.Namespace, err)
	}
	return slices.ContainsFunc(plans.Items, func(p operatorsv1alpha1.InstallPlan) bool {
		return p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseInstalling && slices.Contains(p.Spec.ClusterServiceVersionNames, version.Name)
	}), nil
}
