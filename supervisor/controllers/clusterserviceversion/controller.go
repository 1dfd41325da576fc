package clusterserviceversion

import (
	"context"
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/cleanup"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
	"github.com/chandlery/chandlery/supervisor/informer/cachelag"
)

// reconciler moves ClusterServiceVersions through their phases.
type reconciler struct {
	client          client.Client // reads from the cache
	clock           clock.PassiveClock
	observer        *observer
	installer       *installer
	writer          *versionWriter   // of ClusterServiceVersions
	cleaner         *cleanup.Cleaner // of deleted versions
	refusedAttempts *refusedAttempts // of the API
	events          events.EventRecorder
	gauges          gauges
	errorTimes      errorTimes
}

// Reconcile makes at most one transition of one ClusterServiceVersion.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	err := r.client.Get(ctx, req.NamespacedName, csv)
	if apierrors.IsNotFound(err) {
		r.gauges.forget(req.NamespacedName)
		r.errorTimes.clear(req.NamespacedName)
		r.refusedAttempts.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil || versions.IsCopied(csv) {
		return ctrl.Result{}, err
	}
	if r.writer.isStale(csv) {
		// The event of this process's own write causes the next reconcile.
		return ctrl.Result{RequeueAfter: cachelag.Limit}, nil
	}
	result, err := r.step(ctx, csv)
	if err != nil {
		return apply.RequeueConflict(err)
	}
	return result, nil
}

func (r *reconciler) step(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) (reconcile.Result, error) {
	if !csv.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, csv)
	}
	if !controllerutil.ContainsFinalizer(csv, api.FinalizerCleanup) {
		return ctrl.Result{}, r.writer.setFinalizer(ctx, csv, controllerutil.AddFinalizer)
	}
	begun := r.clock.Now()
	s, err := r.observer.observe(ctx, csv)
	if err != nil {
		s = stateAfterError(csv, begun)
		return r.handleError(ctx, s, phase.KeepAfterError(s.Input, err), err)
	}
	t, err := r.perform(ctx, s, phase.Next(s.Input))
	if err != nil {
		return r.handleError(ctx, s, phase.AfterError(s.Input, err), err)
	}
	r.errorTimes.clear(client.ObjectKeyFromObject(csv))
	if t.Phase == operatorsv1alpha1.CSVPhaseSucceeded {
		r.refusedAttempts.forget(client.ObjectKeyFromObject(csv))
	}
	if wait := statusWriteDelay(s, t); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	return ctrl.Result{RequeueAfter: t.After}, r.record(ctx, s, t)
}

// minStatusInterval is the pause between two writes of the status in one phase.
const minStatusInterval = time.Second

// statusWriteDelay returns how long the status of a version must not be written although it differs. A plan
// adds requirements one by one, and pods start one by one: not each needs a write. A change of the
// phase or its reason is written at once.
func statusWriteDelay(s *state, t phase.Transition) time.Duration {
	before := s.CSV.Status
	same := before.Phase == t.Phase && before.Reason == t.Reason
	if !same || before.LastUpdateTime == nil || len(t.Actions) > 0 {
		return 0
	}
	if equality.Semantic.DeepEqual(phase.Status(before, t, s.Input), before) {
		return 0
	}
	return max(0, minStatusInterval-s.Now.Sub(before.LastUpdateTime.Time))
}

// perform performs a transition's actions and returns the transition to write. That is the given
// one, or its successor when the API refused an object. After any other error the phase stays, and
// the work is repeated.
func (r *reconciler) perform(ctx context.Context, s *state, t phase.Transition) (phase.Transition, error) {
	for _, action := range t.Actions {
		err := r.act(ctx, action, s, t.Cause)
		if err != nil && slices.Contains([]phase.Action{phase.PrepareWebhooks, phase.Install, phase.Switch, phase.CopyRBAC}, action) && isRefused(err) {
			refused, unread := r.observer.attempt(ctx, s)
			if unread != nil {
				return t, unread
			}
			r.refusedAttempts.record(client.ObjectKeyFromObject(s.CSV), refused, s.Now)
			return phase.AfterRefusal(s.Input, err), nil
		}
		if err != nil {
			return t, err
		}
	}
	return t, nil
}

// act performs one action. All actions are idempotent.
func (r *reconciler) act(ctx context.Context, action phase.Action, s *state, cause *api.Cause) error {
	switch action {
	case phase.Annotate:
		if err := r.writer.annotate(ctx, s.CSV, &s.Groups[0], cause); err != nil {
			return err
		}
		emitDetail(r.events, s.CSV, cause)
		return nil
	case phase.PrepareWebhooks:
		return r.installer.prepareWebhooks(ctx, s)
	case phase.Install:
		return r.installer.install(ctx, s)
	case phase.Switch:
		return r.installer.switchWebhooks(ctx, s)
	case phase.RemoveDeployments:
		return r.installer.removeDeployments(ctx, s.CSV)
	case phase.RenewCertificates:
		return r.installer.renewCertificates(ctx, s)
	case phase.CopyRBAC:
		return r.installer.copyRBACConfirmed(ctx, s)
	case phase.DeleteSelf:
		return r.writer.delete(ctx, s.CSV)
	}
	return fmt.Errorf("unknown action %q", action)
}

// record writes the status and the cause of a transition, if they differ. After an action that changed or
// deleted the object itself, it does not write: the write would meet a newer object.
func (r *reconciler) record(ctx context.Context, s *state, t phase.Transition) error {
	want := phase.Status(s.CSV.Status, t, s.Input)
	r.gauges.record(s.CSV, t)
	touched := len(t.Actions) > 0 && (t.Actions[0] == phase.Annotate || t.Actions[0] == phase.DeleteSelf)
	if touched {
		return nil
	}
	if err := r.writer.write(ctx, s.CSV, want, t.Cause); err != nil {
		return client.IgnoreNotFound(err)
	}
	if s.CSV.Status.Phase != t.Phase {
		logf.FromContext(ctx).Info("Changed phase", "from", s.CSV.Status.Phase, "to", t.Phase, "reason", t.Reason)
	}
	r.gauges.countReplacement(s.CSV.Status.Phase, t.Phase)
	emitPhaseChange(r.events, s.CSV, t)
	emitDetail(r.events, s.CSV, t.Cause)
	return nil
}
