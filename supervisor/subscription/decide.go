package subscription

import (
	"errors"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/plan"
	"github.com/chandlery/chandlery/supervisor/resolver"
)

// decision is what is to be done for one Subscription.
type decision struct {
	subscription *operatorsv1alpha1.Subscription
	present      installation
	// install is the version to be installed next; nil for none.
	install *resolver.Choice
	// next is the version that could be installed, were nothing under way.
	next *resolver.Choice
	// identity is that of the plan that installs it.
	identity plan.Identity
	// err is why there is no answer for the Subscription.
	err error
}

// planError is a failure to make a plan for a version that was chosen.
type planError struct{ err error }

// Error says what failed.
func (e *planError) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *planError) Unwrap() error { return e.err }

// errContentUnknown says that the snapshot lacks a bundle that was chosen from
// it, which only a catalog that contradicts itself can bring about.
var errContentUnknown = errors.New("the catalog holds no manifests for it")

// decide answers every Subscription of a namespace, in their order.
func decide(o *observation) []*decision {
	present := map[string]installation{}
	for _, sub := range o.subscriptions {
		present[sub.Name] = installationOf(sub, o.csvs)
	}
	solution := resolver.Resolve(o.problem(present))
	decisions := make([]*decision, 0, len(o.subscriptions))
	for _, sub := range o.subscriptions {
		outcome := solution[sub.Name]
		d := &decision{subscription: sub, present: present[sub.Name], next: outcome.Install}
		switch {
		case refusedForRival(outcome.Err):
			// What is there is another Subscription's.
			d.present = installation{}
		case o.free(d):
			d.install = outcome.Install
		default:
			d.install = o.resume(d)
		}
		// What is wrong with a Subscription is said while a version is under way
		// too: it may be another's.
		if d.install == nil {
			d.err = outcome.Err
		}
		o.identify(d)
		decisions = append(decisions, d)
	}
	return decisions
}

// refusedForRival says whether another Subscription keeps the package.
func refusedForRival(err error) bool {
	refused, ok := errors.AsType[*resolver.UnsatisfiableError](err)
	return ok && refused.Rival != ""
}

// free says whether nothing is under way for a Subscription, so that the next
// version may be begun.
func (o *observation) free(d *decision) bool { return d.present.settled() && !o.executing(d) }

// executing says whether the plan that brought the newest version still has
// steps to apply. The version may be well before its last part is there.
func (o *observation) executing(d *decision) bool {
	if d.present.current == nil {
		return false
	}
	p := o.planFor(d.subscription, d.present.current.Name)
	return p != nil && p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseInstalling
}

// resume gives the version that is under way again when no plan is there for
// it: somebody deleted the plan before it was done, and without it the version
// would wait for its parts for ever. Nil when there is a plan, or the catalog
// no longer has the version.
func (o *observation) resume(d *decision) *resolver.Choice {
	csv := d.present.current
	if csv.Status.Phase != operatorsv1alpha1.CSVPhasePending || o.planFor(d.subscription, csv.Name) != nil {
		return nil
	}
	problem := o.problem(nil)
	for i := range problem.Subscriptions {
		// For all of the package, so that those which want the same still do and
		// those which do not are still told so.
		if problem.Subscriptions[i].Package == d.subscription.Spec.Package {
			problem.Subscriptions[i].StartingCSV = csv.Name
		}
	}
	outcome := resolver.Resolve(problem)[d.subscription.Name]
	if outcome.Install == nil {
		return nil
	}
	outcome.Install.Replaces = csv.Spec.Replaces
	return outcome.Install
}

// identify works out which plan installs what was decided on.
func (o *observation) identify(d *decision) {
	if d.install == nil || d.err != nil {
		d.install = nil
		return
	}
	c := d.install
	key := types.NamespacedName{Namespace: c.Catalog.Namespace, Name: c.Catalog.Name}
	digest := o.catalogs[key].state.Snapshot.Manifests(c.Package, c.Bundle)
	if digest == "" {
		d.err = &planError{err: noManifests(c)}
		d.install = nil
		return
	}
	d.identity = plan.Identity{
		Catalog: c.Catalog.String(), Package: c.Package, Channel: c.Channel,
		Bundle: c.Bundle, Replaces: c.Replaces, Content: digest,
	}
}

// noManifests explains why a bundle cannot be installed.
func noManifests(c *resolver.Choice) error {
	if c.Image == "" {
		return fmt.Errorf("bundle %s of package %s cannot be installed: %w", c.Bundle, c.Package, errContentUnknown)
	}
	return fmt.Errorf("bundle %s of package %s cannot be installed: %w, only the image %s; this version of the supervisor does not pull bundle images, use a catalog that holds the manifests inline (olm.bundle.object)",
		c.Bundle, c.Package, plan.ErrNoInlineManifests, c.Image)
}

// planFor finds the newest plan of a Subscription that installs a version.
func (o *observation) planFor(sub *operatorsv1alpha1.Subscription, csv string) *operatorsv1alpha1.InstallPlan {
	var found *operatorsv1alpha1.InstallPlan
	for _, p := range o.plans {
		if !installs(p, csv) || !servesSubscription(p, sub) {
			continue
		}
		if found == nil || p.Spec.Generation > found.Spec.Generation {
			found = p
		}
	}
	return found
}

func installs(p *operatorsv1alpha1.InstallPlan, csv string) bool {
	return slices.Contains(p.Spec.ClusterServiceVersionNames, csv)
}

// servesSubscription says whether a Subscription is among a plan's owners.
func servesSubscription(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) bool {
	for _, ref := range p.OwnerReferences {
		if ref.UID == sub.UID {
			return true
		}
	}
	return false
}

// approvalOf is the approval of a plan that serves some Subscriptions: Manual
// when one of these wants that. Subscriptions that the plan does not serve have
// no say.
func approvalOf(served []*decision) operatorsv1alpha1.Approval {
	for _, d := range served {
		if d.subscription.GetInstallPlanApproval() == operatorsv1alpha1.ApprovalManual {
			return operatorsv1alpha1.ApprovalManual
		}
	}
	return operatorsv1alpha1.ApprovalAutomatic
}

// nextGeneration is the generation of a plan that is made now: one more than
// any so far.
func (o *observation) nextGeneration() int {
	highest := 0
	for _, p := range o.plans {
		highest = max(highest, p.Spec.Generation)
	}
	for _, sub := range o.subscriptions {
		highest = max(highest, sub.Status.InstallPlanGeneration)
	}
	return highest + 1
}
