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
	"github.com/chandlery/chandlery/supervisor/plan"
)

// An operator in several namespaces shares the cluster-scoped objects of its bundle. The labels of
// such an object name the version that was installed last. After the deletion of that version, the
// object gets the labels of another.

// brought is a cluster-scoped object that a bundle brings.
type brought struct {
	schema.GroupKind

	name string
}

// heirs returns, by object, the version in another namespace that takes over an object of a deleted
// version. Its plan must have applied the same object: a plan whose step failed or was refused gets
// nothing, and neither does a version of another package. Of several, the first by namespace and
// name counts.
func heirs(csv *operatorsv1alpha1.ClusterServiceVersion, others csvs, plans []operatorsv1alpha1.InstallPlan) map[brought]types.NamespacedName {
	alive := map[types.NamespacedName]bool{}
	for _, other := range others {
		alive[client.ObjectKeyFromObject(other)] = other.Namespace != csv.Namespace && other.DeletionTimestamp.IsZero() &&
			!ofAnotherPackage(csv, other)
	}
	found := map[brought]types.NamespacedName{}
	for i := range plans {
		for _, s := range plans[i].Status.Plan {
			heir := types.NamespacedName{Namespace: plans[i].Namespace, Name: s.Resolving}
			if !alive[heir] || !applied(s) {
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

// applied reports whether a plan created or updated the object of a step.
func applied(s *operatorsv1alpha1.Step) bool {
	return s.Status == operatorsv1alpha1.StepStatusCreated || s.Status == operatorsv1alpha1.StepStatusPresent
}

// ofAnotherPackage reports whether two versions state different packages.
func ofAnotherPackage(csv, other metav1.Object) bool {
	mine, theirs := plan.PackageOf(csv), plan.PackageOf(other)
	return mine != "" && theirs != "" && mine != theirs
}

// heirs returns the heirs of a clean-up. It reads plans once in a pass, and only when an object
// remains.
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

// handOver hands objects over to other versions that brought them too, and returns the rest.
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
		// An object that has changed since is handled in the next pass.
		if err := r.relabel(ctx, c.csv, o, heir); apierrors.IsConflict(err) {
			rest = append(rest, *o)
		} else if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("leaving %s to ClusterServiceVersion %s, which has it too: %w", describe(o), heir, err)
		}
	}
	return rest, nil
}

// relabel makes another version the owner of an object, and removes the component labels of csv's
// operator.
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
