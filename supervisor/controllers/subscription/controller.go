package subscription

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// reconciler resolves the Subscriptions of one namespace at a time, and installs their packages.
type reconciler struct {
	backfill  *backfill
	observer  *observer
	uninstall *uninstaller
	solutions resolution.Cache
	content   *contentReader
	rollback  *rollbackWriter
	plans     *planWriter
	owners    *ownerWriter
	recorder  *recorder
	series    *seriesRecorder
	clock     clock.PassiveClock
}

// Reconcile resolves all Subscriptions of a namespace together, and does the next step of each. The
// name of the request is the namespace.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := r.backfill.wait(ctx); err != nil {
		return ctrl.Result{}, err
	}
	o, err := r.observer.observe(ctx, req.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	synced, retry, syncErr := r.uninstall.syncFinalizers(ctx, o.subscriptions)
	o = o.withSubscriptions(synced)
	again, uninstallErr := r.uninstall.uninstall(ctx, o)
	next, failed := earliest(retry, again), errors.Join(syncErr, uninstallErr)
	if len(o.subscriptions) == 0 {
		r.solutions.Forget(req.Name)
		r.observer.properties.retain(req.Name, nil)
		r.series.record(req.Name, nil, len(o.deleting))
		return requeueAt(next, r.clock.Now()), failed
	}
	again, err = r.install(ctx, o)
	if err := errors.Join(failed, err); err != nil {
		return ctrl.Result{}, err
	}
	return requeueAt(earliest(next, again), r.clock.Now()), nil
}

// install does the next step of the installation of each Subscription, and returns when to continue
// without an event.
func (r *reconciler) install(ctx context.Context, o *namespaceState) (time.Time, error) {
	decisions, afterRollback := r.rollback.prepare(ctx, o, r.content.identify(ctx, o.catalogs, r.decide(ctx, o)))
	state, afterPlans := r.plans.ensure(ctx, o, decisions)
	state.decisions = r.owners.addLateOwners(ctx, state.decisions)
	superseded := state.superseded()
	deleteErr := r.plans.deleteSuperseded(ctx, superseded)
	afterOwners, restoreErr := r.owners.restore(ctx, state.namespaceState, state.formerOwners(superseded), r.clock.Now())
	if err := errors.Join(deleteErr, restoreErr); err != nil {
		return time.Time{}, err
	}
	recorded, afterRecord, err := r.recorder.record(ctx, state)
	r.series.record(o.namespace, recorded, len(recorded)+len(o.deleting))
	return earliest(afterRollback, afterPlans, afterOwners, afterRecord, nextCheck(state.plans, recorded, r.clock.Now())), err
}

// decide returns the decisions for a namespace. Where nothing is resolved, it drops the remembered
// solution: it would hold the content of catalogs in memory.
func (r *reconciler) decide(ctx context.Context, o *namespaceState) []*decision {
	if o.groups.problem(o.namespace) != nil {
		r.solutions.Forget(o.namespace)
	}
	return decide(ctx, o, r.resolve)
}

// resolve resolves a namespace, and records how long that took. A cached solution was recorded before.
func (r *reconciler) resolve(ctx context.Context, in resolution.Input) resolution.Solution {
	begin := r.clock.Now()
	solution, cached := r.solutions.Resolve(ctx, in)
	if !cached {
		recordResolution(r.clock.Since(begin), solution)
	}
	return solution
}

// nextCheck returns when a namespace has to be reconciled again because of its decisions, without an
// event; zero for never.
func nextCheck(plans planSet, decisions []*decision, now time.Time) time.Time {
	var next time.Time
	for _, d := range decisions {
		if temporary(d.err) {
			next = earliest(next, now.Add(retryAfter))
		}
		if missing, waits := errors.AsType[imagesError](d.err); waits {
			next = earliest(next, missing.retryAt())
		}
		_, again := waiting(d, currentPlan(plans, d), now)
		next = earliest(next, again)
	}
	return next
}

// temporary reports whether an error may pass without an event that this controller receives.
func temporary(err error) bool {
	var (
		unsatisfiable *resolution.UnsatisfiableError
		groups        *groupsError
		images        imagesError
	)
	lasting := errors.As(err, &unsatisfiable) || errors.As(err, &groups) || errors.As(err, &images) ||
		errors.Is(err, plansteps.ErrNoInlineManifests) || errors.Is(err, errContentUnknown)
	return err != nil && !lasting
}

// requeueAt returns a result that reconciles again at a time; zero for the next event.
func requeueAt(at, now time.Time) ctrl.Result {
	if at.IsZero() {
		return ctrl.Result{}
	}
	return ctrl.Result{RequeueAfter: max(at.Sub(now), time.Millisecond)}
}
