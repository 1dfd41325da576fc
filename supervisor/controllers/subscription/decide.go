package subscription

import (
	"context"
	"errors"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/plan"
	"github.com/chandlery/chandlery/supervisor/resolver"
)

// decision is what is to be done for one Subscription.
type decision struct {
	subscription *operatorsv1alpha1.Subscription
	present      installation
	// underWay is the plan that is being carried out for it; nil for none.
	underWay *operatorsv1alpha1.InstallPlan
	// install is the version to be installed next; nil for none.
	install *resolver.Choice
	// along are the versions of other packages that it needs and that nobody
	// asks for; without install those that it has lost.
	along []*resolver.Choice
	// with names the Subscriptions whose versions it needs.
	with []string
	// withdraw is the newest version, when it is to go without a successor.
	withdraw *operatorsv1alpha1.ClusterServiceVersion
	// then is the older version that is installed when withdraw has gone; nil when one
	// that is there comes into its own again.
	then *resolver.Choice
	// next is the version that could be installed, were nothing under way.
	next *resolver.Choice
	// identities are those of install and of along, in that order.
	identities []plan.Identity
	// adopts says that the Subscription takes over a version that it did not know
	// of before.
	adopts bool
	// held is why nothing newer can be had.
	held error
	// err is why there is no answer for the Subscription.
	err error
}

// choices are all the versions that are to be installed.
func (d *decision) choices() []*resolver.Choice {
	if d.install == nil {
		return d.along
	}
	return append([]*resolver.Choice{d.install}, d.along...)
}

// fail turns a decision to install into the failure to do so.
func (d *decision) fail(err error) {
	d.install, d.along, d.with, d.identities, d.err = nil, nil, nil, nil, err
}

// unmake records that a plan could not be made. One that was begun is what is decided
// on still.
func (d *decision) unmake(err error, begun bool) {
	if begun {
		d.err = err
		return
	}
	d.fail(err)
}

// planError is a failure to make a plan for a version that was chosen.
type planError struct{ err error }

// Error says what failed.
func (e *planError) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *planError) Unwrap() error { return e.err }

// solver solves the problem of a namespace.
type solver func(context.Context, resolver.Problem) resolver.Solution

// begin finds out what every Subscription of a namespace has, in their order, and
// which ones cannot be answered.
func (o *observation) begin() []*decision {
	o.claims = o.claim()
	decisions := make([]*decision, 0, len(o.subscriptions))
	for _, sub := range o.subscriptions {
		d := &decision{subscription: sub, present: installationOf(sub, o.of(o.claims, sub.Spec.Package))}
		if open := o.claims.open[sub.Name]; open != nil && d.present.current == nil {
			d.err = open.error(sub)
		}
		d.underWay = o.underWay(sub, d.present)
		decisions = append(decisions, d)
	}
	o.arrivals = o.arriving(decisions)
	return decisions
}

// decide answers every Subscription of a namespace, in their order.
func decide(ctx context.Context, o *observation, solve solver) []*decision {
	decisions := o.begin()
	if err := o.groups.problem(o.namespace); err != nil {
		o.refuse(decisions, err)
		return decisions
	}
	solution := solve(ctx, o.problem(decisions))
	for _, d := range decisions {
		if d.err == nil {
			o.settle(ctx, d, solution[d.subscription.Name])
		}
		d.adopts = o.adopts(d)
	}
	return decisions
}

// adopts says whether a Subscription that has no memory of a version, because it
// is new or its status was lost, takes over one that is there.
func (o *observation) adopts(d *decision) bool {
	status := d.subscription.Status
	if status.CurrentCSV != "" || status.InstalledCSV != "" || d.present.current == nil {
		return false
	}
	made := o.planFor(d.subscription, d.present.current.Name)
	return made == nil || (isOwner(made, d.subscription) && made.Status.Phase == operatorsv1alpha1.InstallPlanPhaseComplete)
}

// refuse answers every Subscription with the same error. What is there of a
// package stays with those that it came from.
func (o *observation) refuse(decisions []*decision, err error) {
	held := map[string]bool{}
	for _, d := range decisions {
		held[d.subscription.Spec.Package] = held[d.subscription.Spec.Package] || o.holds(d.subscription, d.present)
	}
	for _, d := range decisions {
		d.err = err
		if held[d.subscription.Spec.Package] && !o.holds(d.subscription, d.present) {
			d.present = installation{}
		}
	}
}

// settle makes an outcome a decision.
func (o *observation) settle(ctx context.Context, d *decision, outcome resolver.Outcome) {
	then, withdraws := o.withdraws(d, outcome)
	switch {
	case refusedForRival(outcome.Err):
		// What is there is another Subscription's.
		d.present = installation{}
	case withdraws:
		d.withdraw, d.then = d.present.current, then
		return
	case o.free(d):
		d.install, d.along, d.next = outcome.Install, outcome.Along, outcome.Install
		d.with = outcome.With
		if o.lingers(d) {
			d.install, d.along, d.with = nil, nil, nil
		}
	default:
		d.next = outcome.Available
		resumed := o.resume(ctx, d)
		d.install, d.along = resumed.Install, resumed.Along
	}
	// What is wrong with a Subscription is said while a version is under way
	// too: it may be another's.
	if len(d.choices()) == 0 {
		d.err = o.groups.explain(outcome.Err, o.excluded(d.subscription), o.global)
	}
	d.held = outcome.Held
}

// refusedForRival says whether another Subscription keeps the package.
func refusedForRival(err error) bool {
	refused, ok := errors.AsType[*resolver.UnsatisfiableError](err)
	return ok && refused.Rival != ""
}

// free says whether nothing is under way for a Subscription, so that the next
// version may be begun. Where an OperatorGroup lets operators fail forward, or the
// Subscription is pinned to another version, that is so too once the newest version has
// failed.
func (o *observation) free(d *decision) bool {
	if o.lacking(d) {
		return false
	}
	forward := o.groups.failForward || d.pinnedElsewhere()
	return (d.present.settled() || (d.present.failed() && forward)) && d.underWay == nil
}

// resume gives the version that is under way again when no plan is there for
// it: somebody deleted the plan before it was done, and without it the version
// would wait for its parts for ever, or be without them. Nothing when there is a plan, or the catalog
// no longer has the version.
func (o *observation) resume(ctx context.Context, d *decision) resolver.Outcome {
	csv := d.present.current
	if !o.lacking(d) {
		return resolver.Outcome{}
	}
	// As if nothing of the package were there, for all who want it: those which
	// want the same still do, and those which do not are still told so.
	pkg := d.subscription.Spec.Package
	problem := resolver.Problem{Namespace: o.namespace, Catalogs: map[resolver.CatalogKey]resolver.Catalog{}}
	for key, c := range o.catalogs {
		problem.Catalogs[resolver.CatalogKey{Namespace: key.Namespace, Name: key.Name}] = offer(c)
	}
	for _, operator := range o.operators() {
		if operator.Subject.Package != pkg {
			problem.Operators = append(problem.Operators, operator)
		}
	}
	for _, sub := range o.subscriptions {
		if sub.Spec.Package == pkg {
			w := o.wish(&decision{subscription: sub})
			w.StartingCSV, w.Before, w.Pin, w.Holds = csv.Name, "", "", o.holds(sub, d.present)
			problem.Subscriptions = append(problem.Subscriptions, w)
		}
	}
	outcome := resolver.Resolve(ctx, problem)[d.subscription.Name]
	if outcome.Install == nil || outcome.Install.Bundle != csv.Name {
		return resolver.Outcome{}
	}
	again := *outcome.Install
	again.Replaces = csv.Spec.Replaces
	outcome.Install = &again
	return outcome
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

// servesSubscription says whether a Subscription is among a plan's owners, or was
// made by it.
func servesSubscription(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) bool {
	return generatedBy(sub) == p.Name || isOwner(p, sub)
}

// isOwner says whether a Subscription is among a plan's owners.
func isOwner(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) bool {
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
