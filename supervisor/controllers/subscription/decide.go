package subscription

import (
	"context"
	"errors"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/plan"
	"github.com/chandlery/chandlery/supervisor/resolver"
)

// decision is the decision for one Subscription.
type decision struct {
	subscription *operatorsv1alpha1.Subscription
	present      installation
	// underWay is the plan that is in progress for it; nil for none.
	underWay *operatorsv1alpha1.InstallPlan
	// install is the version to install next; nil for none.
	install *resolver.Choice
	// along are the versions of other packages that it needs and that no Subscription asks for.
	// Without install, they are the lost dependencies of the installed version.
	along []*resolver.Choice
	// with names the Subscriptions whose versions it needs.
	with []string
	// withdraw is the newest version, when it has to be deleted without a successor.
	withdraw *operatorsv1alpha1.ClusterServiceVersion
	// then is the older version to install after the deletion of withdraw. It is nil when an
	// existing version becomes current again.
	then *resolver.Choice
	// next is the version that could be installed if nothing were in progress.
	next *resolver.Choice
	// identities are the identities of install and of along, in that order.
	identities []plan.Identity
	// adopts reports that the Subscription adopts a version that its status did not name before.
	adopts bool
	// held is why no newer version can be installed.
	held error
	// err is why there is no decision for the Subscription.
	err error
}

// choices returns all versions that are to be installed.
func (d *decision) choices() []*resolver.Choice {
	if d.install == nil {
		return d.along
	}
	return append([]*resolver.Choice{d.install}, d.along...)
}

// fail replaces a decision to install by an error.
func (d *decision) fail(err error) {
	d.install, d.along, d.with, d.identities, d.err = nil, nil, nil, nil, err
}

// unmake records that a plan could not be created or completed. If the plan was begun, the decision
// stays.
func (d *decision) unmake(err error, begun bool) {
	if begun {
		d.err = err
		return
	}
	d.fail(err)
}

// planError is a failure to create a plan for a chosen version.
type planError struct{ err error }

// Error returns the message of the cause.
func (e *planError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *planError) Unwrap() error { return e.err }

// solver resolves the problem of a namespace.
type solver func(context.Context, resolver.Problem) resolver.Solution

// begin returns a decision for every Subscription of a namespace, in their order. The decisions
// have the present versions, and the errors that need no resolution.
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

// decide returns a decision for every Subscription of a namespace, in their order.
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

// adopts reports whether a Subscription adopts an existing version. Its status names no version,
// because it is new or its status was lost.
func (o *observation) adopts(d *decision) bool {
	status := d.subscription.Status
	if status.CurrentCSV != "" || status.InstalledCSV != "" || d.present.current == nil {
		return false
	}
	made := o.planFor(d.subscription, d.present.current.Name)
	return made == nil || (isOwner(made, d.subscription) && made.Status.Phase == operatorsv1alpha1.InstallPlanPhaseComplete)
}

// refuse sets the same error for every Subscription. An existing version stays with the
// Subscriptions that it came from.
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

// settle turns the outcome of a resolution into a decision.
func (o *observation) settle(ctx context.Context, d *decision, outcome resolver.Outcome) {
	then, withdraws := o.withdraws(d, outcome)
	switch {
	case refusedForRival(outcome.Err):
		// The existing version belongs to another Subscription.
		d.present = installation{}
	case withdraws:
		d.withdraw, d.then = d.present.current, then
		return
	case o.free(d):
		d.install, d.along, d.next = outcome.Install, outcome.Dependencies, outcome.Install
		d.with = outcome.CoInstalled
		if o.lingers(d) {
			d.install, d.along, d.with = nil, nil, nil
		}
	default:
		d.next = outcome.Available
		resumed := o.resume(ctx, d)
		d.install, d.along = resumed.Install, resumed.Dependencies
	}
	// A resolution error is reported also while a version is in progress, which may be another
	// Subscription's.
	if len(d.choices()) == 0 {
		d.err = o.groups.explain(outcome.Err, o.excluded(d.subscription), o.global)
	}
	d.held = outcome.Constrained
}

// refusedForRival reports whether another Subscription holds the package.
func refusedForRival(err error) bool {
	refused, ok := errors.AsType[*resolver.UnsatisfiableError](err)
	return ok && refused.Rival != ""
}

// free reports whether nothing is in progress for a Subscription, and the next version may begin. A
// failed newest version also counts where the OperatorGroup allows upgrades to fail forward, or
// where the Subscription is pinned to another version.
func (o *observation) free(d *decision) bool {
	if o.lacking(d) {
		return false
	}
	forward := o.groups.failForward || d.pinnedElsewhere()
	return (d.present.settled() || (d.present.failed() && forward)) && d.underWay == nil
}

// resume returns the version in progress once more, when its plan is gone or has no steps. Without
// a plan, the version would wait for its parts for ever. It returns nothing when the plan has
// steps, or the catalog lacks the version.
func (o *observation) resume(ctx context.Context, d *decision) resolver.Outcome {
	csv := d.present.current
	if !o.lacking(d) {
		return resolver.Outcome{}
	}
	// Resolve as if the package were absent, for all Subscriptions to it. Each Subscription gets
	// the same outcome as before.
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

// planFor returns the newest plan of a Subscription that installs a version.
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

// servesSubscription reports whether a Subscription owns a plan, or was created by it.
func servesSubscription(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) bool {
	return generatedBy(sub) == p.Name || isOwner(p, sub)
}

// isOwner reports whether a Subscription is an owner of a plan.
func isOwner(p *operatorsv1alpha1.InstallPlan, sub *operatorsv1alpha1.Subscription) bool {
	for _, ref := range p.OwnerReferences {
		if ref.UID == sub.UID {
			return true
		}
	}
	return false
}

// approvalOf returns the approval of a plan for the Subscriptions that it serves: Manual when one
// of them asks for it.
func approvalOf(served []*decision) operatorsv1alpha1.Approval {
	for _, d := range served {
		if d.subscription.GetInstallPlanApproval() == operatorsv1alpha1.ApprovalManual {
			return operatorsv1alpha1.ApprovalManual
		}
	}
	return operatorsv1alpha1.ApprovalAutomatic
}

// nextGeneration returns the generation of a new plan: one more than any existing one.
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
