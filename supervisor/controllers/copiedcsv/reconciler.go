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
)

const (
	// stepsPerPass is how many steps are taken for a version before others get their turn
	// and everything is looked at again.
	stepsPerPass = 50
	// conflictDelay is the pause after a write that met a newer object, long enough for
	// the cache to have seen it.
	conflictDelay = 50 * time.Millisecond
	// continueDelay is the pause between two passes of which the first left something to
	// do.
	continueDelay = time.Millisecond
)

// reconciler keeps the copies of ClusterServiceVersions.
type reconciler struct {
	reader reader
	writer writer
	memory *memory
	clock  clock.PassiveClock
	events events.EventRecorder
	counts *counts
}

// Reconcile does some of what is to be done about the copies of a ClusterServiceVersion,
// which may be gone.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	o, err := r.reader.observe(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	o.now = r.clock.Now()
	h := r.memory.of(req.NamespacedName)
	h.prune(o)
	m := model{key: o.key}
	if o.origin != nil {
		m.image = imageOf(o.origin)
		if m.says, err = h.fingerprint(o.origin, m.image); err != nil {
			return ctrl.Result{}, reconcile.TerminalError(err)
		}
	} else if there, err := r.there(ctx, o); there || err != nil {
		return ctrl.Result{RequeueAfter: conflictDelay}, err
	}
	w := decide(o, h, m.says)
	h.note(o.now, w.outdated)
	result := r.perform(ctx, o, h, m, w)
	if err := ctx.Err(); err != nil {
		return ctrl.Result{}, err
	}
	r.tell(o, h, w)
	if o.origin == nil && len(o.copies) == 0 && len(w.steps) == 0 {
		r.memory.forget(o.key)
		r.counts.forget(o.key)
	}
	return result, nil
}

// there says whether a version is there of which the cache knows nothing, while it knows
// copies: these would be taken for leftovers.
func (r *reconciler) there(ctx context.Context, o *observation) (bool, error) {
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

// perform takes steps, as many as there are for a pass. One that fails holds up no other,
// but that nobody is bound to a role that could not be given.
func (r *reconciler) perform(ctx context.Context, o *observation, h *history, m model, w work) reconcile.Result {
	wait, left, taken := w.wait, len(w.steps), 0
	sooner := func(d time.Duration) {
		if d > 0 && (wait == 0 || d < wait) {
			wait = d
		}
	}
	h.resume(w.steps)
	for _, s := range w.steps {
		if s.binding != nil && h.waits(s) {
			continue
		}
		if rest := h.rests(s, o.now); rest > 0 {
			sooner(rest)
			continue
		}
		if taken == stepsPerPass {
			sooner(continueDelay)
			break
		}
		taken++
		found, err := r.writer.take(ctx, s, m)
		if ctx.Err() != nil {
			return ctrl.Result{}
		}
		sooner(r.took(ctx, h, s, found, err))
		if err == nil {
			left--
		}
	}
	r.counts.left(o.key, left, h.stuck(w))
	return ctrl.Result{RequeueAfter: wait}
}

// took notes how a step ended, and says when to look again if it has to be repeated.
func (r *reconciler) took(ctx context.Context, h *history, s step, found *record, err error) time.Duration {
	switch {
	case err == nil:
		if found != nil {
			h.records[s.namespace] = *found
		}
		delete(h.setbacks, s.String())
		return 0
	case apierrors.IsConflict(err):
		// Somebody else wrote first; what they wrote is on its way here.
		return conflictDelay
	case leaving(err):
		// The namespace is going, or gone; that is on its way here too. Where it was
		// something else, another look will tell.
		return cacheLag
	}
	h.fail(s, r.clock.Now(), err)
	rest := h.rests(s, r.clock.Now())
	logf.FromContext(ctx).Info("Failed to keep a copy", "action", s.action, "target", s.namespace, "name", s.name,
		"error", err.Error(), "again", rest.String())
	return rest
}

// stuck counts the namespaces that lack something and will not get it by waiting.
func (h *history) stuck(w work) int {
	namespaces := sets.KeySet(w.blocked)
	for _, s := range h.setbacks {
		namespaces.Insert(s.namespace)
	}
	return namespaces.Len()
}

// waits says whether a binding is of a role that could not be given.
func (h *history) waits(s step) bool {
	role := step{action: grant, namespace: s.namespace, name: s.binding.RoleRef.Name}
	_, failed := h.setbacks[role.String()]
	return failed
}

// leaving says whether a write was refused because its namespace is on its way out.
func leaving(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) ||
		(apierrors.IsNotFound(err) && !errors.Is(err, errForeign))
}

// note remembers since when there are copies with a status that is not the version's.
func (h *history) note(now time.Time, outdated bool) {
	switch {
	case !outdated:
		h.outdated = time.Time{}
	case h.outdated.IsZero():
		h.outdated = now
	}
}
