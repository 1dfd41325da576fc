package operatorgroup

import (
	"context"
	"errors"
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/apply"
)

// groupRolesReconciler creates, updates and deletes the cluster roles of the OperatorGroups in a
// namespace. It is keyed by namespace, because a namespaced group cannot own a cluster-scoped role,
// and the role outlives the group. At every start, it finds the roles of groups that were deleted
// while no supervisor ran.
type groupRolesReconciler struct {
	client client.Client
	roles  roleWriter
}

// Reconcile creates, updates and deletes the cluster roles of the groups in one namespace.
func (r *groupRolesReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	namespace := req.Name
	var groups operatorsv1.OperatorGroupList
	if err := r.client.List(ctx, &groups, client.InNamespace(namespace), readOnly); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing OperatorGroups in namespace %s: %w", namespace, err)
	}
	var labelled rbacv1.ClusterRoleList
	if err := r.client.List(ctx, &labelled, client.MatchingFields{indexGroupsIn: namespace}, readOnly); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing ClusterRoles of the OperatorGroups in namespace %s: %w", namespace, err)
	}
	var problems []error
	for _, role := range orphanedRoles(groups.Items, labelled.Items) {
		if err := r.roles.remove(ctx, role); err != nil {
			problems = append(problems, err)
			continue
		}
		logf.FromContext(ctx).Info("Deleted the ClusterRole of a deleted OperatorGroup", "clusterRole", role.Name)
	}
	for i := range groups.Items {
		if groups.Items[i].DeletionTimestamp.IsZero() {
			problems = append(problems, r.ensure(ctx, &groups.Items[i]))
		}
	}
	return apply.RequeueConflict(errors.Join(problems...))
}

func (r *groupRolesReconciler) ensure(ctx context.Context, group *operatorsv1.OperatorGroup) error {
	for _, want := range groupRoles(group) {
		have, err := r.roles.get(ctx, want.Name)
		if err != nil {
			return err
		}
		if have != nil && (r.roles.isStale(have) || sameGroupRole(want, have)) {
			continue
		}
		result, err := r.roles.createOrUpdate(ctx, want, have)
		if err != nil {
			return fmt.Errorf("writing the roles of OperatorGroup %s/%s: %w", group.Namespace, group.Name, err)
		}
		logf.FromContext(ctx).Info("Wrote a ClusterRole of an OperatorGroup", "operatorGroup", client.ObjectKeyFromObject(group),
			"clusterRole", want.Name, "result", result)
	}
	return nil
}
