package subscription

import (
	"cmp"
	"context"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/plan"
	"github.com/chandlery/chandlery/supervisor/resolver"
)

// running reports whether the steps of a plan are being applied, or are about to be. A plan that
// waits for approval is not running: a newer version may still replace it.
func running(p *operatorsv1alpha1.InstallPlan) bool {
	switch p.Status.Phase {
	case operatorsv1alpha1.InstallPlanPhaseInstalling:
		return true
	case operatorsv1alpha1.InstallPlanPhaseRequiresApproval:
		return p.Spec.Approved
	case operatorsv1alpha1.InstallPlanPhasePlanning:
		return p.Spec.Approved && len(p.Status.Plan) > 0
	default:
		return false
	}
}

// underWay returns the plan that is in progress for a Subscription: one that brings a missing
// version, or that still applies parts of the newest version. A version may succeed before its last
// part exists. Plans older than the one of the existing version do not count. It returns nil when
// there is none.
func (o *observation) underWay(sub *operatorsv1alpha1.Subscription, present installation) *operatorsv1alpha1.InstallPlan {
	oldest := o.broughtBy(sub, present)
	var found *operatorsv1alpha1.InstallPlan
	for _, p := range o.plans {
		if !running(p) || p.Spec.Generation < oldest || (found != nil && p.Spec.Generation < found.Spec.Generation) {
			continue
		}
		if o.brings(p, sub) || o.completes(p, sub, present) {
			found = p
		}
	}
	return found
}

// completes reports whether a plan is the newest one of a Subscription for the existing version.
func (o *observation) completes(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription, present installation) bool {
	return present.current != nil && o.planFor(sub, present.current.Name) == p
}

// brings reports whether a plan brings a missing version, to a Subscription that it serves or of
// the package of the Subscription.
func (o *observation) brings(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) bool {
	if own := versionFor(p, sub); own != "" && !o.isPresent(own) {
		return true
	}
	return slices.ContainsFunc(p.Spec.ClusterServiceVersionNames, func(csv string) bool {
		return !o.isPresent(csv) && o.planFor(sub, csv) == p
	})
}

// versionFor returns the version of the package of a Subscription that a plan installs, for
// whatever Subscription; empty for none.
func versionFor(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) string {
	if _, labelled := p.Labels[plan.ComponentLabel(sub.Spec.Package, sub.Namespace)]; !labelled {
		return ""
	}
	return plan.VersionOf(p, sub.Spec.Package)
}

func (o *observation) isPresent(csv string) bool {
	return slices.ContainsFunc(o.csvs, func(c *operatorsv1alpha1.ClusterServiceVersion) bool { return c.Name == csv })
}

// arrival is a version that a plan is bringing. It counts as existing: no plan may bring another
// version of the package, and other versions may depend on it.
type arrival struct {
	operator resolver.Operator
	replaces string
}

// arriving returns the missing versions of the plans in progress.
func (o *observation) arriving(decisions []*decision) []arrival {
	var list []arrival
	seen := map[string]bool{}
	for _, d := range decisions {
		if d.underWay == nil {
			continue
		}
		for _, step := range d.underWay.Status.Plan {
			name := step.Resource.Name
			version := step.Resource.Kind == operatorsv1alpha1.ClusterServiceVersionKind && !seen[name] && !o.isPresent(name)
			if !version {
				continue
			}
			if a, ok := o.arrivalOf(step); ok {
				seen[name] = true
				list = append(list, a)
			}
		}
	}
	slices.SortFunc(list, func(a, b arrival) int { return cmp.Compare(a.operator.Name, b.operator.Name) })
	return list
}

// arrivalOf returns the version of a step, from its manifest or from the catalog.
func (o *observation) arrivalOf(step *operatorsv1alpha1.Step) (arrival, bool) {
	u, ref, err := plan.Manifest(step)
	if err != nil {
		return arrival{}, false
	}
	a := arrival{operator: resolver.Operator{Name: step.Resource.Name}}
	if ref == nil {
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		csv.Annotations = u.GetAnnotations()
		f := readFacts(csv)
		a.operator.Subject, a.operator.Requires = f.subject, f.requires
		a.replaces, _, err = unstructured.NestedString(u.Object, "spec", "replaces")
		return a, err == nil
	}
	a.replaces, a.operator.Subject.Package = ref.Replaces, ref.Package
	catalog := types.NamespacedName{Namespace: step.Resource.CatalogSourceNamespace, Name: step.Resource.CatalogSource}
	if snapshot := o.catalogs[catalog].State.Snapshot; snapshot != nil {
		if pkg := snapshot.Content.Package(ref.Package); pkg != nil && pkg.Bundle(ref.Bundle) != nil {
			bundle := pkg.Bundle(ref.Bundle)
			a.operator.Subject, a.operator.Requires = bundle.Subject, bundle.Requires
		}
	}
	return a, true
}

// bringsFrom reports whether a plan brings a version of the package and from the catalog that a
// Subscription names.
func bringsFrom(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) bool {
	version := versionFor(p, sub)
	return version != "" && slices.ContainsFunc(p.Status.Plan, func(s *operatorsv1alpha1.Step) bool {
		r := s.Resource
		return r.Kind == operatorsv1alpha1.ClusterServiceVersionKind && r.Name == version &&
			r.CatalogSource == sub.Spec.CatalogSource && r.CatalogSourceNamespace == sub.Spec.CatalogSourceNamespace
	})
}

// join makes Subscriptions owners of a plan in progress that brings what they ask for. They were
// created after the plan.
func (r *Reconciler) join(ctx context.Context, decisions []*decision) {
	for _, d := range decisions {
		p := d.underWay
		if p == nil || d.err != nil || servesSubscription(p, d.subscription) || !bringsFrom(p, d.subscription) {
			continue
		}
		if err := r.ensureOwners(ctx, p.DeepCopy(), d.subscription); err != nil {
			d.fail(&planError{err: err})
		}
	}
}
