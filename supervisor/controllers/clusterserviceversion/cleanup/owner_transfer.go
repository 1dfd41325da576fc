package cleanup

import (
	"context"
	"fmt"
	"maps"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// restoreTimeout bounds the writes that make a version the owner of an object again.
const restoreTimeout = 10 * time.Second

// ownerTransfer makes other versions the owners of objects that they share with a deleted one.
type ownerTransfer struct {
	client client.Client
	live   client.Reader
}

// transfer makes next the owner of an object of csv. The cache may show a version whose own clean-up has
// ended already, so that nothing would delete the object. Unless next still exists, csv becomes the
// owner again, and transfer returns apply.ErrStale.
func (t ownerTransfer) transfer(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, o *metav1.PartialObjectMetadata,
	next *operatorsv1alpha1.ClusterServiceVersion,
) error {
	key := client.ObjectKeyFromObject(next)
	err := t.relabel(ctx, csv, o, key)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return err
	}
	if err == nil {
		err = t.confirm(ctx, next)
	}
	if err == nil {
		logf.FromContext(ctx).Info("Left an object to another version that has it too", "object", describe(o), "owner", key.String())
		return nil
	}
	// A write that returned an error may have succeeded. The time of this pass may have run out.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	if failed := t.restore(ctx, o, key); failed != nil {
		return failed
	}
	return err
}

// confirm returns apply.ErrStale if a version is gone, recreated or being deleted.
func (t ownerTransfer) confirm(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) error {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind))
	err := t.live.Get(ctx, client.ObjectKeyFromObject(csv), found)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("confirming ClusterServiceVersion %s/%s: %w", csv.Namespace, csv.Name, err)
	case err != nil, found.UID != csv.UID, !found.DeletionTimestamp.IsZero():
		return apply.ErrStale
	}
	return nil
}

// restore restores the labels that an object had before next became its owner. It does nothing if
// the object has another owner by now. It repeats after conflicts: the next pass does not find an
// object of next.
func (t ownerTransfer) restore(ctx context.Context, o *metav1.PartialObjectMetadata, next types.NamespacedName) error {
	for {
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(o.GroupVersionKind())
		err := t.live.Get(ctx, client.ObjectKeyFromObject(o), live)
		if err == nil && live.UID == o.UID && live.Labels[api.LabelOwner] == next.Name && live.Labels[api.LabelOwnerNamespace] == next.Namespace {
			after := live.DeepCopy()
			maps.Copy(after.Labels, o.Labels)
			err = apply.Patch(ctx, t.client, after, apply.MergeFromLocked(live))
		}
		if apierrors.IsConflict(err) {
			continue
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("taking %s back from ClusterServiceVersion %s: %w", describe(o), next, err)
		}
		return nil
	}
}

// relabel makes another version the owner of an object. If that is in another namespace, the object
// loses the component labels of csv's operator.
func (t ownerTransfer) relabel(
	ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, o *metav1.PartialObjectMetadata, next types.NamespacedName,
) error {
	after := o.DeepCopy()
	after.Labels[api.LabelOwner], after.Labels[api.LabelOwnerNamespace] = next.Name, next.Namespace
	if next.Namespace != csv.Namespace {
		for key := range plansteps.ComponentLabels(csv.Labels) {
			delete(after.Labels, key)
		}
	}
	return apply.Patch(ctx, t.client, after, apply.MergeFromLocked(o))
}
