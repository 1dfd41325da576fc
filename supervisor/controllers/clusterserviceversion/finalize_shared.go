package clusterserviceversion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// inheritance is what other versions may take over of the objects of a deleted version.
type inheritance struct {
	// applied holds, by object, the versions whose newest plan applied it.
	applied map[brought]csvs
	// unplanned are the versions in other namespaces that run and have no plan: their Subscription
	// was deleted, and its plans with it.
	unplanned csvs
}

// inheritanceOf returns what remaining versions may take over. A version of another package gets
// nothing, and neither does one whose step failed or was refused in its newest plan.
func inheritanceOf(csv *operatorsv1alpha1.ClusterServiceVersion, others csvs, plans []operatorsv1alpha1.InstallPlan) inheritance {
	newest := newestPlans(plans)
	found := inheritance{applied: map[brought]csvs{}}
	for _, other := range others {
		if !other.DeletionTimestamp.IsZero() || plan.PackageOf(csv) != plan.PackageOf(other) {
			continue
		}
		p, planned := newest[client.ObjectKeyFromObject(other)]
		if !planned && other.Namespace != csv.Namespace && other.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded {
			found.unplanned = append(found.unplanned, other)
		}
		for _, object := range appliedBy(p, other.Name) {
			found.applied[object] = append(found.applied[object], other)
		}
	}
	return found
}

// newestPlans returns the newest plan of each version.
func newestPlans(plans []operatorsv1alpha1.InstallPlan) map[types.NamespacedName]*operatorsv1alpha1.InstallPlan {
	newest := map[types.NamespacedName]*operatorsv1alpha1.InstallPlan{}
	for i := range plans {
		p := &plans[i]
		for _, s := range p.Status.Plan {
			key := types.NamespacedName{Namespace: p.Namespace, Name: s.Resolving}
			if before := newest[key]; before == nil || before.Spec.Generation < p.Spec.Generation {
				newest[key] = p
			}
		}
	}
	return newest
}

// appliedBy returns the objects of a version that a plan created or updated; nil without a plan.
func appliedBy(p *operatorsv1alpha1.InstallPlan, version string) []brought {
	if p == nil {
		return nil
	}
	var objects []brought
	for _, s := range p.Status.Plan {
		if s.Resolving == version && (s.Status == operatorsv1alpha1.StepStatusCreated || s.Status == operatorsv1alpha1.StepStatusPresent) {
			objects = append(objects, brought{schema.GroupKind{Group: s.Resource.Group, Kind: s.Resource.Kind}, s.Resource.Name})
		}
	}
	return objects
}

// heir returns the version that takes over an object; nil for none. A version whose plan applied the
// object precedes those without a plan.
func (i inheritance) heir(o *metav1.PartialObjectMetadata) *operatorsv1alpha1.ClusterServiceVersion {
	candidates := i.applied[brought{o.GroupVersionKind().GroupKind(), o.Name}]
	if len(candidates) == 0 {
		candidates = withComponent(i.unplanned, o.Labels)
	}
	if len(candidates) == 0 {
		return nil
	}
	return youngest(candidates)
}

// youngest returns the youngest version in the first namespace. A version is younger than those that
// it replaces. Otherwise the creation times count, and then the names. There must be a version.
func youngest(versions csvs) *operatorsv1alpha1.ClusterServiceVersion {
	last := slices.MinFunc(versions, func(a, b *operatorsv1alpha1.ClusterServiceVersion) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, successor := range walk(last, versions.in(last.Namespace).successor) {
		last = successor
	}
	return last
}

// withComponent returns the versions that have an object as a component of their Operator: both have
// the label of the version's own package and namespace. Other component labels of a version are no
// evidence, since its bundle may bring any.
func withComponent(versions csvs, labels map[string]string) csvs {
	var out csvs
	for _, v := range versions {
		own := plan.ComponentLabel(plan.PackageOf(v), v.Namespace)
		_, labelled := v.Labels[own]
		if _, has := labels[own]; labelled && has {
			out = append(out, v)
		}
	}
	return out
}

// inheritance returns what others may take over in a clean-up. It reads plans once in a pass, and
// only when an object remains.
func (r *reconciler) inheritance(ctx context.Context, c *cleanup) (*inheritance, error) {
	if c.inheritance == nil {
		var plans operatorsv1alpha1.InstallPlanList
		if err := r.client.List(ctx, &plans, readOnly); err != nil {
			return nil, fmt.Errorf("listing InstallPlans: %w", err)
		}
		found := inheritanceOf(c.csv, c.others, plans.Items)
		c.inheritance = &found
	}
	return c.inheritance, nil
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
		others, err := r.inheritance(ctx, c)
		if err != nil {
			return nil, err
		}
		heir := others.heir(o)
		if heir == nil {
			rest = append(rest, *o)
			continue
		}
		// An object or heir that has changed since is handled in the next pass.
		if err := transfer(ctx, r, c.csv, o, heir); apierrors.IsConflict(err) || errors.Is(err, errStale) {
			rest = append(rest, *o)
		} else if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("leaving %s to ClusterServiceVersion %s/%s, which has it too: %w", describe(o), heir.Namespace, heir.Name, err)
		}
	}
	return rest, nil
}

// relabel makes another version the owner of an object. If that is in another namespace, the object
// loses the component labels of csv's operator.
func (r *reconciler) relabel(
	ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, o *metav1.PartialObjectMetadata, heir types.NamespacedName,
) error {
	after := o.DeepCopy()
	after.Labels[api.LabelOwner], after.Labels[api.LabelOwnerNamespace] = heir.Name, heir.Namespace
	if heir.Namespace != csv.Namespace {
		for key := range plan.ComponentLabels(csv.Labels) {
			delete(after.Labels, key)
		}
	}
	patch := client.MergeFromWithOptions(o, client.MergeFromWithOptimisticLock{})
	//nolint:wrapcheck // wrapped by handOver, which looks at what kind of error it is
	return r.client.Patch(ctx, after, patch, client.FieldOwner(api.FieldManager))
}
