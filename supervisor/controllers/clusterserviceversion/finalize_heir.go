package clusterserviceversion

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
)

// takeBackTimeout bounds the writes that make a version the owner of an object again.
const takeBackTimeout = 10 * time.Second

// transfer makes heir the owner of an object of csv. The cache may show an heir whose own clean-up has
// ended already, so that nothing would delete the object. Unless heir still exists, csv becomes the
// owner again, and transfer returns errStale.
func transfer(ctx context.Context, r *reconciler, csv *operatorsv1alpha1.ClusterServiceVersion, o *metav1.PartialObjectMetadata,
	heir *operatorsv1alpha1.ClusterServiceVersion,
) error {
	key := client.ObjectKeyFromObject(heir)
	err := r.relabel(ctx, csv, o, key)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return err
	}
	if err == nil {
		err = confirmHeir(ctx, r.live, heir)
	}
	if err == nil {
		logf.FromContext(ctx).Info("Left an object to another version that has it too", "object", describe(o), "heir", key.String())
		return nil
	}
	// A write that returned an error may have succeeded. The time of this pass may have run out.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackTimeout)
	defer cancel()
	if failed := takeBack(ctx, r, o, key); failed != nil {
		return failed
	}
	return err
}

// confirmHeir returns errStale if a version is gone, recreated or being deleted.
func confirmHeir(ctx context.Context, live client.Reader, heir *operatorsv1alpha1.ClusterServiceVersion) error {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind))
	err := live.Get(ctx, client.ObjectKeyFromObject(heir), found)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("confirming ClusterServiceVersion %s/%s: %w", heir.Namespace, heir.Name, err)
	case err != nil, found.UID != heir.UID, !found.DeletionTimestamp.IsZero():
		return errStale
	}
	return nil
}

// takeBack restores the labels that an object had before heir became its owner. It does nothing if
// the object has another owner by now. It repeats after conflicts: the next pass does not find an
// object of heir.
func takeBack(ctx context.Context, r *reconciler, o *metav1.PartialObjectMetadata, heir types.NamespacedName) error {
	for {
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(o.GroupVersionKind())
		err := r.live.Get(ctx, client.ObjectKeyFromObject(o), live)
		if err == nil && live.UID == o.UID && live.Labels[api.LabelOwner] == heir.Name && live.Labels[api.LabelOwnerNamespace] == heir.Namespace {
			after := live.DeepCopy()
			maps.Copy(after.Labels, o.Labels)
			patch := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})
			err = r.client.Patch(ctx, after, patch, client.FieldOwner(api.FieldManager))
		}
		if apierrors.IsConflict(err) {
			continue
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("taking %s back from ClusterServiceVersion %s: %w", describe(o), heir, err)
		}
		return nil
	}
}
