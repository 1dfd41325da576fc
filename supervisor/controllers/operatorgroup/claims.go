package operatorgroup

import (
	"context"
	"fmt"
	"slices"
	"sync"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/api/providedapis"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/informer/groupindex"
)

// readOnly avoids copies of objects that are only read.
const readOnly = client.UnsafeDisableDeepCopy

// claimReconciler writes the annotation olm.providedAPIs of OperatorGroups. It lists the APIs that
// a group has claimed for the operators in its namespace.
type claimReconciler struct {
	client client.Client

	// mu serializes new claims, so that each one takes earlier ones into account. If two groups
	// want the same API, the first one gets it, and the second one sees that claim.
	mu sync.Mutex
	// written holds the last claims that this process wrote.
	written claimCache
}

// Reconcile updates the claims of one group.
func (r *claimReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var group operatorsv1.OperatorGroup
	if err := r.client.Get(ctx, req.NamespacedName, &group); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !group.DeletionTimestamp.IsZero() || group.Spec.StaticProvidedAPIs {
		return ctrl.Result{}, nil
	}
	groups, err := r.competingGroups(ctx, &group)
	if err != nil {
		return ctrl.Result{}, err
	}
	members, err := r.members(ctx, group.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	have, want := providedapis.Claimed(&group), claims(&group, groups, members)
	switch {
	case len(want.Without(have)) > 0:
		return apply.RequeueConflict(client.IgnoreNotFound(r.claimAvailable(ctx, &group, members)))
	case len(have.Without(want)) > 0:
		return apply.RequeueConflict(client.IgnoreNotFound(r.write(ctx, &group, want)))
	default:
		return ctrl.Result{}, nil
	}
}

// competingGroups returns the groups of a group's namespace and its contenders in other namespaces, from the
// cache.
func (r *claimReconciler) competingGroups(ctx context.Context, group *operatorsv1.OperatorGroup) ([]operatorsv1.OperatorGroup, error) {
	var own operatorsv1.OperatorGroupList
	if err := r.client.List(ctx, &own, client.InNamespace(group.Namespace), readOnly); err != nil {
		return nil, fmt.Errorf("listing OperatorGroups in namespace %s: %w", group.Namespace, err)
	}
	competing, err := groupindex.Competing(ctx, r.client, group)
	if err != nil {
		return nil, err //nolint:wrapcheck // says what was listed
	}
	return append(own.Items, competing...), nil
}

// claimAvailable claims the available APIs. It holds mu. The cache may lack claims of this process; written
// supplies them.
func (r *claimReconciler) claimAvailable(ctx context.Context, group *operatorsv1.OperatorGroup, members []operatorsv1alpha1.ClusterServiceVersion) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	groups, err := r.competingGroups(ctx, group)
	if err != nil {
		return err
	}
	for i := range groups {
		groups[i] = *r.written.withWritten(&groups[i])
	}
	group = r.written.withWritten(group)
	want := claims(group, groups, members)
	if want.String() == providedapis.Claimed(group).String() {
		return nil
	}
	return r.write(ctx, group, want)
}

// claims returns the APIs that a group should have claimed. Only a group that is alone in its
// namespace and has known targets gets new claims.
func claims(group *operatorsv1.OperatorGroup, groups []operatorsv1.OperatorGroup, members []operatorsv1alpha1.ClusterServiceVersion) providedapis.Set {
	alone := !slices.ContainsFunc(groups, func(other operatorsv1.OperatorGroup) bool {
		return other.Namespace == group.Namespace && other.Name != group.Name
	})
	return providedapis.Desired(group, groups, members, alone && group.Status.LastUpdated != nil)
}

// members returns the ClusterServiceVersions of a namespace, without copies.
func (r *claimReconciler) members(ctx context.Context, namespace string) ([]operatorsv1alpha1.ClusterServiceVersion, error) {
	var list operatorsv1alpha1.ClusterServiceVersionList
	if err := r.client.List(ctx, &list, client.InNamespace(namespace), readOnly); err != nil {
		return nil, fmt.Errorf("listing ClusterServiceVersions in namespace %s: %w", namespace, err)
	}
	return slices.DeleteFunc(list.Items, func(csv operatorsv1alpha1.ClusterServiceVersion) bool { return isCopied(&csv) }), nil
}

func isCopied(obj client.Object) bool {
	_, copied := obj.GetLabels()[operatorsv1alpha1.CopiedLabelKey]
	return copied
}

// write writes the claims of a group with its resourceVersion. A group without claims has an empty
// annotation, as in OLM.
func (r *claimReconciler) write(ctx context.Context, group *operatorsv1.OperatorGroup, want providedapis.Set) error {
	patch := apply.MergePatch{"metadata": map[string]any{
		"resourceVersion": group.ResourceVersion,
		"annotations":     map[string]string{operatorsv1.OperatorGroupProvidedAPIsAnnotationKey: want.String()},
	}}
	target := &operatorsv1.OperatorGroup{}
	target.Namespace, target.Name = group.Namespace, group.Name
	if err := apply.Patch(ctx, r.client, target, patch); err != nil {
		return fmt.Errorf("writing the claims of OperatorGroup %s/%s: %w", group.Namespace, group.Name, err)
	}
	r.written.add(target, want)
	have := providedapis.Claimed(group)
	logf.FromContext(ctx).Info("Updated the APIs that an OperatorGroup provides",
		"claimed", want.Without(have).String(), "released", have.Without(want).String())
	return nil
}
