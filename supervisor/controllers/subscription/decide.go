package subscription

import (
	"context"
	"errors"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/resolution"
)

// solver resolves the problem of a namespace.
type solver func(context.Context, resolution.Input) resolution.Solution

// decide returns a decision for every Subscription of a namespace, in their order.
func decide(ctx context.Context, o *namespaceState, solve solver) []*decision {
	r, decisions := newDecider(o)
	if err := o.groups.problem(o.namespace); err != nil {
		return refuse(o.plans, decisions, err)
	}
	solution := solve(ctx, r.input(decisions))
	decided := make([]*decision, 0, len(decisions))
	for _, d := range decisions {
		decided = append(decided, r.decide(ctx, d, solution[d.subscription.Name]))
	}
	return decided
}

// decide returns a decision with the outcome of the resolution.
func (r *decider) decide(ctx context.Context, d *decision, outcome resolution.Outcome) *decision {
	next := *d
	if d.err == nil {
		next = r.choose(ctx, next, outcome)
	}
	next.adopts = adopts(r.plans, &next)
	return &next
}

// choose returns a decision with the versions that follow from the outcome of the resolution.
func (r *decider) choose(ctx context.Context, d decision, outcome resolution.Outcome) decision {
	fallback, withdraws := withdrawal(&d, outcome)
	switch {
	case packageKeptByOther(outcome.Err):
		// The existing version belongs to another Subscription.
		d.present = installation{}
	case withdraws:
		d.withdraw, d.fallback = d.present.current, fallback
		return d
	case r.canStart(&d):
		d.next = outcome.Install
		// A version that an update has just replaced must be deleted first.
		if returning := outcome.Install; returning == nil || !returning.Downgrade || !exists(r.versions, returning.Bundle) {
			d.selection = selection{install: outcome.Install, coInstalled: outcome.Dependencies, dependsOn: outcome.CoInstalled}
		}
	default:
		d.next = outcome.Available
		resumed := r.resume(ctx, &d)
		d.selection = selection{install: resumed.Install, coInstalled: resumed.Dependencies}
	}
	// A resolution error is reported also while a version is in progress, which may be another
	// Subscription's.
	if len(d.choices()) == 0 {
		d.err = r.groups.explain(outcome.Err, r.excluded(d.subscription), r.global)
	}
	d.held = outcome.Constrained
	return d
}

// excluded reports whether a Subscription names a catalog that the OperatorGroup excludes.
func (r *decider) excluded(sub *operatorsv1alpha1.Subscription) bool {
	return r.groups.excludesGlobal && sub.Spec.CatalogSourceNamespace == r.global && r.global != r.namespace
}

// adopts reports whether a Subscription adopts an existing version. Its status names no version,
// because it is new or its status was lost.
func adopts(plans planSet, d *decision) bool {
	status := d.subscription.Status
	if status.CurrentCSV != "" || status.InstalledCSV != "" || d.present.current == nil {
		return false
	}
	p := plans.installing(d.subscription, d.present.current.Name)
	return p == nil || (isOwner(p, d.subscription) && complete(p))
}

// refuse returns the decisions with the same error for every Subscription. An existing version stays
// with the Subscriptions that it came from.
func refuse(plans planSet, decisions []*decision, err error) []*decision {
	installed := map[string]bool{}
	for _, d := range decisions {
		installed[d.subscription.Spec.Package] = installed[d.subscription.Spec.Package] || plans.installed(d.subscription, d.present)
	}
	refused := make([]*decision, 0, len(decisions))
	for _, d := range decisions {
		next := d.failed(err)
		if installed[d.subscription.Spec.Package] && !plans.installed(d.subscription, d.present) {
			next.present = installation{}
		}
		refused = append(refused, next)
	}
	return refused
}

// packageKeptByOther reports whether an error states that another Subscription keeps the package.
func packageKeptByOther(err error) bool {
	refused, ok := errors.AsType[*resolution.UnsatisfiableError](err)
	return ok && refused.KeptBy != ""
}
