package clusterserviceversion

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/openshift"
)

const (
	// troublePatience is how long errors that may pass are not worth a word in the
	// status. After it, it is the pause between two tries, and between two writes.
	troublePatience = 30 * time.Second
	// tellingTimeout bounds the write that tells of an error.
	tellingTimeout = 10 * time.Second
	// messageTrouble parts what a message said before from the error that keeps the
	// version from going on.
	messageTrouble = "; going on fails and is tried again: "
)

// failures remembers since when each version has met with nothing but errors. It is
// not in the status, as most are over before anybody could read of them.
type failures struct {
	mu    sync.Mutex
	since map[types.NamespacedName]time.Time
}

// last returns how long a version has met with errors, and remembers when that began if
// it is the first.
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

// over forgets the errors of a version.
func (f *failures) over(key types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.since, key)
}

// unseen is the scope of a version of which not all could be read that its next
// transition depends on.
func unseen(csv *operatorsv1alpha1.ClusterServiceVersion, now time.Time) *scope {
	return &scope{Observation: Observation{
		CSV: csv, Now: now, Requirements: Requirements{Statuses: csv.Status.RequirementStatus},
	}}
}

// troubled returns an error to be tried again soon, and when such errors have lasted for
// some time writes the transition that tells of them.
func (r *reconciler) troubled(ctx context.Context, s *scope, t Transition, err error) (reconcile.Result, error) {
	// Somebody else wrote first, or the supervisor ends.
	passing := apierrors.IsConflict(err) || errors.Is(err, errStale) || errors.Is(ctx.Err(), context.Canceled)
	// Proxies that are not known when the supervisor begins seldom become so by themselves.
	unproxied := errors.Is(err, openshift.ErrUnknown)
	if passing || !unproxied && r.failures.last(client.ObjectKeyFromObject(s.CSV), s.Now, r.clock.Now()) < troublePatience {
		return ctrl.Result{}, err
	}
	logf.FromContext(ctx).Error(err, "Cannot go on, tried again", "phase", s.CSV.Status.Phase, "after", t.After.String())
	if repeated(s.CSV.Status, t, s.Now) {
		return ctrl.Result{RequeueAfter: t.After}, nil
	}
	// The time of this pass may be what has run out.
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

// repeated reports whether a transition tells of an error that the status tells of in
// other words, which is not worth a write at each try.
func repeated(status operatorsv1alpha1.ClusterServiceVersionStatus, t Transition, now time.Time) bool {
	return status.Phase == t.Phase && status.Reason == t.Reason && strings.Contains(status.Message, messageTrouble) &&
		status.LastUpdateTime != nil && now.Sub(status.LastUpdateTime.Time) < troublePatience
}

// afterTrouble is the transition after something could not be done for long. An
// installation has failed by that; any other work leaves the phase as it is.
func afterTrouble(o Observation, err error) Transition {
	switch o.CSV.Status.Phase {
	case operatorsv1alpha1.CSVPhaseInstallReady, operatorsv1alpha1.CSVPhaseInstalling:
		return afterRefusal(o, err)
	default:
		return inTrouble(o, err)
	}
}

// inTrouble keeps the phase, and says what keeps the version in it.
func inTrouble(o Observation, err error) Transition {
	t := stay(o)
	if t.Phase == operatorsv1alpha1.CSVPhaseNone {
		t.Phase, t.Reason = operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVReasonRequirementsUnknown
	}
	t.Message = cmp.Or(t.Message, messageUnknown) + messageTrouble + err.Error()
	t.After = troublePatience
	return t
}

// withoutTrouble is what a message says besides an error, which is over when anything
// else is to be written.
func withoutTrouble(message string) string {
	before, _, _ := strings.Cut(message, messageTrouble)
	return before
}
