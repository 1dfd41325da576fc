package clusterserviceversion

import (
	"context"
	"fmt"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
)

// An operator that is installed in several namespaces shares what its bundle brings that
// is in no namespace. The labels of such an object name the version that was installed
// last; when that goes, the object goes on under the name of another.

// brought is an object in no namespace that a bundle brings.
type brought struct {
	schema.GroupKind

	name string
}

// heirs finds the versions of other namespaces that brought the same objects as a
// version that goes, by the plans that installed them. Of several, the first by
// namespace and name takes an object over.
func heirs(csv *operatorsv1alpha1.ClusterServiceVersion, others csvs, plans []operatorsv1alpha1.InstallPlan) map[brought]types.NamespacedName {
	alive := map[types.NamespacedName]bool{}
	for _, other := range others {
		alive[client.ObjectKeyFromObject(other)] = other.Namespace != csv.Namespace && other.DeletionTimestamp.IsZero()
	}
	found := map[brought]types.NamespacedName{}
	for i := range plans {
		for _, s := range plans[i].Status.Plan {
			heir := types.NamespacedName{Namespace: plans[i].Namespace, Name: s.Resolving}
			if !alive[heir] {
				continue
			}
			object := brought{schema.GroupKind{Group: s.Resource.Group, Kind: s.Resource.Kind}, s.Resource.Name}
			if before, known := found[object]; !known || heir.String() < before.String() {
				found[object] = heir
			}
		}
	}
	return found
}

// heirs looks once in a pass, and not before there is something to leave to them.
func (r *reconciler) heirs(ctx context.Context, c *cleanup) (map[brought]types.NamespacedName, error) {
	if c.heirs == nil {
		var plans operatorsv1alpha1.InstallPlanList
		if err := r.client.List(ctx, &plans, readOnly); err != nil {
			return nil, fmt.Errorf("listing InstallPlans: %w", err)
		}
		c.heirs = heirs(c.csv, c.others, plans.Items)
	}
	return c.heirs, nil
}

// handOver leaves to other versions what they brought too, and returns what is nobody
// else's.
func (r *reconciler) handOver(ctx context.Context, c *cleanup, found []metav1.PartialObjectMetadata) ([]metav1.PartialObjectMetadata, error) {
	var rest []metav1.PartialObjectMetadata
	for i := range found {
		o := &found[i]
		if o.Namespace != "" || !o.DeletionTimestamp.IsZero() {
			rest = append(rest, *o)
			continue
		}
		heirs, err := r.heirs(ctx, c)
		if err != nil {
			return nil, err
		}
		heir, shared := heirs[brought{o.GroupVersionKind().GroupKind(), o.Name}]
		if !shared {
			rest = append(rest, *o)
			continue
		}
		// What somebody has written to meanwhile is looked at again.
		if err := r.relabel(ctx, c.csv, o, heir); apierrors.IsConflict(err) {
			rest = append(rest, *o)
		} else if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("leaving %s to ClusterServiceVersion %s, which has it too: %w", describe(o), heir, err)
		}
	}
	return rest, nil
}

// relabel makes an object another version's, and a component of csv's operator no more.
func (r *reconciler) relabel(
	ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, o *metav1.PartialObjectMetadata, heir types.NamespacedName,
) error {
	after := o.DeepCopy()
	after.Labels[api.LabelOwner], after.Labels[api.LabelOwnerNamespace] = heir.Name, heir.Namespace
	for key := range csv.Labels {
		if strings.HasPrefix(key, api.PrefixComponent) {
			delete(after.Labels, key)
		}
	}
	patch := client.MergeFromWithOptions(o, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, after, patch, client.FieldOwner(api.FieldManager)); err != nil {
		return err //nolint:wrapcheck // wrapped by the one caller, who looks at what kind of error it is
	}
	logf.FromContext(ctx).Info("Left an object to another version that has it too", "object", describe(o), "heir", heir.String())
	return nil
}
