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

// running says whether the steps of a plan are being applied, or are about to be.
// One that waits for approval is not: a newer version may still take its place.
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

// underWay finds the plan that is being carried out for a Subscription: one that
// brings a version which is not there yet, or still has parts of the newest one to
// apply, which may be well before its last part is there. What nobody wants any
// more, because a newer plan's version is there, does not count. Nil when there is
// none.
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

// completes says whether a plan is the newest one of a Subscription for what is
// present.
func (o *observation) completes(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription, present installation) bool {
	return present.current != nil && o.planFor(sub, present.current.Name) == p
}

// brings says whether a plan is to bring a version that is not there yet, to a
// Subscription that it serves or of the package that the Subscription asks for.
func (o *observation) brings(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) bool {
	if own := versionFor(p, sub); own != "" && !o.isPresent(own) {
		return true
	}
	return slices.ContainsFunc(p.Spec.ClusterServiceVersionNames, func(csv string) bool {
		return !o.isPresent(csv) && o.planFor(sub, csv) == p
	})
}

// versionFor gives the version that a plan installs of the package that a
// Subscription asks for, whoever asked for the plan; empty for none.
func versionFor(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) string {
	if _, labelled := p.Labels[plan.ComponentLabel(sub.Spec.Package, sub.Namespace)]; !labelled {
		return ""
	}
	return plan.VersionOf(p, sub.Spec.Package)
}

func (o *observation) isPresent(csv string) bool {
	return slices.ContainsFunc(o.csvs, func(c *operatorsv1alpha1.ClusterServiceVersion) bool { return c.Name == csv })
}

// arrival is a version that a plan is bringing. It is as good as there: nobody is to
// bring another one of the package, and what needs it can count on it.
type arrival struct {
	operator resolver.Operator
	replaces string
}

// arriving are the versions that are not there yet of the plans that are under way.
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

// arrivalOf reads the step that makes a version, or what the catalog has in its
// place.
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

// bringsFrom says whether a plan brings a version of the package that a Subscription
// asks for, from the catalog that it names.
func bringsFrom(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) bool {
	version := versionFor(p, sub)
	return version != "" && slices.ContainsFunc(p.Status.Plan, func(s *operatorsv1alpha1.Step) bool {
		r := s.Resource
		return r.Kind == operatorsv1alpha1.ClusterServiceVersionKind && r.Name == version &&
			r.CatalogSource == sub.Spec.CatalogSource && r.CatalogSourceNamespace == sub.Spec.CatalogSourceNamespace
	})
}

// join makes Subscriptions owners of a plan under way that brings what they ask for
// too: they came when it had been begun.
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
