package cleanup

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

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// An operator in several namespaces shares the cluster-scoped objects of its bundle. The labels of
// such an object name the version that was installed last. After the deletion of that version, the
// object gets the labels of another.

// sharedObject is a cluster-scoped object that a bundle brings.
type sharedObject struct {
	schema.GroupKind

	name string
}

// remainingOwners are the versions that may take over objects of a deleted version.
type remainingOwners struct {
	// applied holds, by object, the versions whose newest plan applied it.
	applied map[sharedObject]versions.List
	// unplanned are the versions in other namespaces that run and have no plan: their Subscription
	// was deleted, and its plans with it.
	unplanned versions.List
}

// remainingOwnersOf returns the versions that may take over objects of csv. A version of another
// package gets none, and neither does one whose step failed or was refused in its newest plan.
func remainingOwnersOf(csv *operatorsv1alpha1.ClusterServiceVersion, others versions.List, plans []operatorsv1alpha1.InstallPlan) remainingOwners {
	newest := newestPlans(plans)
	found := remainingOwners{applied: map[sharedObject]versions.List{}}
	for _, other := range others {
		if !other.DeletionTimestamp.IsZero() || plansteps.PackageOf(csv) != plansteps.PackageOf(other) {
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
func appliedBy(p *operatorsv1alpha1.InstallPlan, version string) []sharedObject {
	if p == nil {
		return nil
	}
	var objects []sharedObject
	for _, s := range p.Status.Plan {
		if s.Resolving == version && plansteps.IsApplied(s.Status) {
			objects = append(objects, sharedObject{schema.GroupKind{Group: s.Resource.Group, Kind: s.Resource.Kind}, s.Resource.Name})
		}
	}
	return objects
}

// of returns the version that takes over an object; nil for none. A version whose plan applied the
// object precedes those without a plan.
func (r remainingOwners) of(o *metav1.PartialObjectMetadata) *operatorsv1alpha1.ClusterServiceVersion {
	candidates := r.applied[sharedObject{o.GroupVersionKind().GroupKind(), o.Name}]
	if len(candidates) == 0 {
		candidates = withComponent(r.unplanned, o.Labels)
	}
	if len(candidates) == 0 {
		return nil
	}
	return youngest(candidates)
}

// youngest returns the youngest version in the first namespace. A version is younger than those that
// it replaces. Otherwise the creation times count, and then the names. There must be a version.
func youngest(list versions.List) *operatorsv1alpha1.ClusterServiceVersion {
	last := slices.MinFunc(list, func(a, b *operatorsv1alpha1.ClusterServiceVersion) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, successor := range list.In(last.Namespace).Successors(last) {
		last = successor
	}
	return last
}

// withComponent returns the versions that have an object as a component of their Operator: both have
// the label of the version's own package and namespace. Other component labels of a version are no
// evidence, since its bundle may bring any.
func withComponent(list versions.List, labels map[string]string) versions.List {
	var out versions.List
	for _, v := range list {
		own := plansteps.ComponentLabel(plansteps.PackageOf(v), v.Namespace)
		_, labelled := v.Labels[own]
		if _, has := labels[own]; labelled && has {
			out = append(out, v)
		}
	}
	return out
}

// readRemaining returns the versions that may take over objects of csv.
func (c *Cleaner) readRemaining(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, others versions.List) (remainingOwners, error) {
	var plans operatorsv1alpha1.InstallPlanList
	if err := c.client.List(ctx, &plans, readOnly); err != nil {
		return remainingOwners{}, fmt.Errorf("listing InstallPlans: %w", err)
	}
	return remainingOwnersOf(csv, others, plans.Items), nil
}

// transferShared makes other versions the owners of the objects that they brought too. It returns
// the other objects.
func (c *Cleaner) transferShared(ctx context.Context, up *cleanup, found []metav1.PartialObjectMetadata) ([]metav1.PartialObjectMetadata, error) {
	var rest []metav1.PartialObjectMetadata
	for i := range found {
		o := &found[i]
		if o.Namespace != "" || !o.DeletionTimestamp.IsZero() {
			rest = append(rest, *o)
			continue
		}
		owners, err := up.remaining()
		if err != nil {
			return nil, err
		}
		next := owners.of(o)
		if next == nil {
			rest = append(rest, *o)
			continue
		}
		// An object or owner that has changed since is handled in the next pass.
		if err := c.owners.transfer(ctx, up.csv, o, next); apierrors.IsConflict(err) || errors.Is(err, apply.ErrStale) {
			rest = append(rest, *o)
		} else if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("leaving %s to ClusterServiceVersion %s/%s, which has it too: %w", describe(o), next.Namespace, next.Name, err)
		}
	}
	return rest, nil
}
