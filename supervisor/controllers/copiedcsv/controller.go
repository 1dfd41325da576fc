package copiedcsv

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/apply"
)

const (
	// stepsPerPass is the maximum number of steps in one reconciliation of a version. After it,
	// other versions get their turn, and the state is observed again.
	stepsPerPass = 50
	// stepsPerNamespace is the maximum number of those steps in one namespace. Its users can create
	// many roles that the pass deletes; these do not delay other namespaces.
	stepsPerNamespace = 10
	// continueDelay is the pause before the next pass if steps are left.
	continueDelay = time.Millisecond
)

// reconciler reconciles the copies of ClusterServiceVersions.
type reconciler struct {
	reader        reader
	writer        writer
	versionStates *versionStates
	clock         clock.PassiveClock
	events        events.EventRecorder
	counts        *counts
}

// Reconcile executes some of the steps for the copies of a ClusterServiceVersion, which may be
// gone.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	o, err := r.reader.observe(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	o.now = r.clock.Now()
	h := r.versionStates.get(req.NamespacedName)
	h.prune(o)
	m := copyTemplate{key: o.key}
	if o.origin != nil {
		m.csv = templateOf(o.origin)
		if m.fingerprint, err = h.fingerprint(o.origin, m.csv); err != nil {
			return ctrl.Result{}, reconcile.TerminalError(err)
		}
	} else if exists, err := r.existsUncached(ctx, o); exists || err != nil {
		return ctrl.Result{RequeueAfter: apply.ConflictDelay}, err
	}
	w := decide(o, h, m.fingerprint)
	h.setOutdated(o.now, w.outdated)
	result := r.executeSteps(ctx, o, h, m, w)
	if err := ctx.Err(); err != nil {
		return ctrl.Result{}, err
	}
	r.emitEvents(o, h, w)
	if o.origin == nil && len(o.copies) == 0 && len(w.steps) == 0 {
		r.versionStates.forget(o.key)
		r.counts.forget(o.key)
	}
	return result, nil
}

// existsUncached reports whether the API server has a version that the cache lacks, although copies exist.
// Without this check, the copies would be deleted as leftovers.
func (r *reconciler) existsUncached(ctx context.Context, o *input) (bool, error) {
	if len(o.copies)+len(o.granted) == 0 {
		return false, nil
	}
	origin := copyMetadata()
	if err := r.writer.live.Get(ctx, o.key, origin); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return false, nil
		}
		return false, fmt.Errorf("making sure that ClusterServiceVersion %s is gone: %w", o.key, err)
	}
	return !isCopied(origin), nil
}

// executeSteps executes steps up to the limit of one pass. A failed step does not block others, except
// bindings to a role that could not be created.
func (r *reconciler) executeSteps(ctx context.Context, o *input, h *versionState, m copyTemplate, w decision) reconcile.Result {
	wait, left, taken, in := w.wait, len(w.steps), 0, map[string]int{}
	sooner := func(d time.Duration) {
		if d > 0 && (wait == 0 || d < wait) {
			wait = d
		}
	}
	h.pruneFailures(w.steps)
	for _, s := range w.steps {
		if s.binding != nil && h.roleFailed(s) {
			continue
		}
		if rest := h.retryIn(s, o.now); rest > 0 {
			sooner(rest)
			continue
		}
		if taken == stepsPerPass || in[s.namespace] == stepsPerNamespace {
			sooner(continueDelay)
			continue
		}
		taken++
		in[s.namespace]++
		found, err := r.writer.execute(ctx, s, m)
		if ctx.Err() != nil {
			return ctrl.Result{}
		}
		sooner(r.recordResult(ctx, h, s, found, err))
		if err == nil {
			left--
		}
	}
	r.counts.setPending(o.key, left, h.countBlocked(w))
	return ctrl.Result{RequeueAfter: wait}
}

// recordResult records the result of a step. It returns when to repeat the step; 0 for never.
func (r *reconciler) recordResult(ctx context.Context, h *versionState, s step, found *record, err error) time.Duration {
	switch {
	case err == nil:
		if found != nil {
			h.record(s, *found)
		}
		delete(h.failures, s.String())
		return 0
	case apierrors.IsConflict(err):
		// Another client has written first. The cache will receive the newer object.
		return apply.ConflictDelay
	case namespaceGone(err):
		// The namespace is being deleted or gone, and the cache will receive that. Otherwise, the
		// next pass finds the cause.
		return cacheLag
	}
	h.fail(s, r.clock.Now(), err)
	rest := h.retryIn(s, r.clock.Now())
	logf.FromContext(ctx).Info("Failed to keep a copy", "action", s.action, "target", s.namespace, "name", s.name,
		"error", err.Error(), "again", rest.String())
	return rest
}

// countBlocked counts the namespaces with problems that waiting does not solve.
func (h *versionState) countBlocked(w decision) int {
	namespaces := sets.KeySet(w.blocked)
	for _, s := range h.failures {
		namespaces.Insert(s.namespace)
	}
	return namespaces.Len()
}

// roleFailed reports whether a binding refers to a role that could not be created.
func (h *versionState) roleFailed(s step) bool {
	role := step{action: applyRole, namespace: s.namespace, name: s.binding.RoleRef.Name}
	_, failed := h.failures[role.String()]
	return failed
}

// namespaceGone reports whether a write failed because its namespace is being deleted.
func namespaceGone(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) ||
		(apierrors.IsNotFound(err) && !errors.Is(err, errOtherOwner))
}

// setOutdated records since when copies with an outdated status exist.
func (h *versionState) setOutdated(now time.Time, outdated bool) {
	switch {
	case !outdated:
		h.outdated = time.Time{}
	case h.outdated.IsZero():
		h.outdated = now
	}
}
