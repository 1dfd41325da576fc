package clusterserviceversion

import (
	"context"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// cleanupDelay is the pause between looks at objects that are slow to go.
const cleanupDelay = time.Second

// stage is one kind of object that a ClusterServiceVersion leaves behind
// outside its namespace, where no owner reference reaches.
type stage struct {
	name string
	kind func() client.Object
	list func() client.ObjectList
}

// stages are in the order in which they are cleaned up: a right is taken away
// before its definition.
func stages() []stage {
	return []stage{
		{
			"ClusterRoleBindings",
			func() client.Object { return &rbacv1.ClusterRoleBinding{} },
			func() client.ObjectList { return &rbacv1.ClusterRoleBindingList{} },
		},
		{
			"ClusterRoles",
			func() client.Object { return &rbacv1.ClusterRole{} },
			func() client.ObjectList { return &rbacv1.ClusterRoleList{} },
		},
	}
}

// finalize cleans up after a ClusterServiceVersion that is being deleted and
// lets it go when nothing is left. Each pass starts from the beginning and
// finds what is left to do by looking, so it may be broken off anywhere.
func (r *reconciler) finalize(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(csv, Finalizer) {
		return ctrl.Result{}, nil
	}
	for _, s := range stages() {
		left, err := r.clean(ctx, csv, s)
		if err != nil {
			return ctrl.Result{}, err
		}
		if left > 0 {
			logf.FromContext(ctx).Info("Waiting for objects to go", "kind", s.name, "left", left)
			return ctrl.Result{RequeueAfter: cleanupDelay}, nil
		}
	}
	return ctrl.Result{}, client.IgnoreNotFound(r.setFinalizer(ctx, csv, controllerutil.RemoveFinalizer))
}

// clean deletes the objects of a stage and returns how many are still there,
// by the API's count and not the cache's.
func (r *reconciler) clean(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, s stage) (int, error) {
	if err := r.client.DeleteAllOf(ctx, s.kind(), ownerLabels(csv)); err != nil {
		return 0, fmt.Errorf("deleting %s of ClusterServiceVersion %s/%s: %w", s.name, csv.Namespace, csv.Name, err)
	}
	list := s.list()
	if err := r.live.List(ctx, list, ownerLabels(csv)); err != nil {
		return 0, fmt.Errorf("listing %s of ClusterServiceVersion %s/%s: %w", s.name, csv.Namespace, csv.Name, err)
	}
	return apimeta.LenList(list), nil
}

// setFinalizer adds or removes the finalizer. The optimistic lock is there
// because a merge patch replaces the list of finalizers as a whole.
func (r *reconciler) setFinalizer(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion,
	change func(client.Object, string) bool,
) error {
	changed := csv.DeepCopy()
	if !change(changed, Finalizer) {
		return nil
	}
	patch := client.MergeFromWithOptions(csv, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, changed, patch, client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("changing finalizers of ClusterServiceVersion %s/%s: %w", csv.Namespace, csv.Name, err)
	}
	return nil
}
