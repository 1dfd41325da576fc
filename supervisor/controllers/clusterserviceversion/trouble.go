package clusterserviceversion

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
)

const (
	// troublePatience is how long temporary errors do not appear in the status. After it, it is the
	// pause between two tries, and between two writes.
	troublePatience = 30 * time.Second
	// tellingTimeout bounds the write of the status with an error.
	tellingTimeout = 10 * time.Second
)

// failures holds since when each version has met only errors. It is not in the status, as most
// errors end before a user could read them.
type failures struct {
	mu    sync.Mutex
	since map[types.NamespacedName]time.Time
}

// last returns how long a version has met errors, and records the begin of the first.
func (f *failures) last(key types.NamespacedName, began, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.since == nil {
		f.since = map[types.NamespacedName]time.Time{}
	}
	if _, known := f.since[key]; !known {
		f.since[key] = began
	}
	return now.Sub(f.since[key])
}

// over drops the errors of a version.
func (f *failures) over(key types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.since, key)
}

// unseen returns the scope of a version whose observation failed.
func unseen(csv *operatorsv1alpha1.ClusterServiceVersion, now time.Time) *scope {
	return &scope{Observation: Observation{
		CSV: csv, Now: now, Requirements: Requirements{Statuses: csv.Status.RequirementStatus},
	}}
}

// troubled returns an error, so that it is retried soon. When errors have lasted for some time, it
// writes the transition that shows them.
func (r *reconciler) troubled(ctx context.Context, s *scope, t Transition, err error) (reconcile.Result, error) {
	// Another client wrote first, or the supervisor stops.
	passing := apierrors.IsConflict(err) || errors.Is(err, apply.ErrStale) || errors.Is(ctx.Err(), context.Canceled)
	// Proxies that are unknown at the start of the supervisor seldom become known without a change.
	unproxied := t.Cause.Reason == api.ReasonProxiesUnknown
	if passing || !unproxied && r.failures.last(client.ObjectKeyFromObject(s.CSV), s.Now, r.clock.Now()) < troublePatience {
		return ctrl.Result{}, err
	}
	logf.FromContext(ctx).Error(err, "Cannot go on, tried again", "phase", s.CSV.Status.Phase, "after", t.After.String())
	if appendsLately(s.CSV, t, s.Now) {
		return ctrl.Result{RequeueAfter: t.After}, nil
	}
	// The time of this pass may have run out.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellingTimeout)
	defer cancel()
	if err := r.record(ctx, s, t); err != nil {
		return ctrl.Result{}, err
	}
	if unproxied {
		announceUnproxied(r.events, s.CSV, err)
	}
	return ctrl.Result{RequeueAfter: t.After}, nil
}

// appendsLately reports whether a transition replaces an error that was appended to the message a
// short time ago. A write at each try is not worthwhile.
func appendsLately(csv *operatorsv1alpha1.ClusterServiceVersion, t Transition, now time.Time) bool {
	shown, _ := api.CauseOf(csv)
	written := csv.Status.LastUpdateTime
	return shown.PhaseMessage != "" && t.Cause.PhaseMessage != "" && written != nil && now.Sub(written.Time) < troublePatience
}

// afterTrouble returns the transition after a lasting error. An installation fails; any other work
// keeps the phase.
func afterTrouble(o Observation, err error) Transition {
	switch o.CSV.Status.Phase {
	case operatorsv1alpha1.CSVPhaseInstallReady, operatorsv1alpha1.CSVPhaseInstalling:
		return afterRefusal(o, err)
	default:
		return inTrouble(o, err)
	}
}

// inTrouble returns a transition that keeps the phase and shows the error.
func inTrouble(o Observation, err error) Transition {
	t := stay(o)
	if t.Phase == operatorsv1alpha1.CSVPhaseNone {
		t.Phase, t.Reason = operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVReasonRequirementsUnknown
	}
	t.Cause = &api.Cause{Reason: reasonOf(err), PhaseMessage: cmp.Or(t.Message, messageUnknown)}
	t.Message = t.Cause.PhaseMessage + "; going on fails and is tried again: " + err.Error()
	t.After = troublePatience
	return t
}
