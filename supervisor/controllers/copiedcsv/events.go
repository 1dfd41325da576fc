package copiedcsv

import (
	"fmt"
	"maps"
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
)

const (
	// actionCopy is the action of all Events of this package.
	actionCopy = "Copy"
	// maxEventAge is the maximum age of a version for an Event that it is not copied, unless a copy
	// was just deleted. Older versions had the Event before this process started.
	maxEventAge = 10 * time.Minute
	// minFailures is the number of failures of a step before an Event reports it. A short outage
	// of the API server causes no Event.
	minFailures = 3
)

// emitEvents emits Events on a version about relevant changes.
func (r *reconciler) emitEvents(o *input, h *versionState, w decision) {
	if o.origin == nil {
		return
	}
	r.emitBlocked(o, h, problemsByNamespace(w.blocked, h.failures))
	switch {
	case w.placement.mode != modeSync:
	case !w.placement.disabled:
		h.disabledEvent = ""
	case shouldEmitDisabled(o, h, w):
		h.disabledEvent = o.origin.UID
		r.events.Eventf(o.origin, nil, corev1.EventTypeWarning, operatorsv1.DisabledCopiedCSVsConditionType, actionCopy,
			"%s", olmtext.CopyingDisabled(o.key.String()))
	}
}

// shouldEmitDisabled reports whether to emit the Event that a version is not copied.
func shouldEmitDisabled(o *input, h *versionState, w decision) bool {
	if h.disabledEvent == o.origin.UID {
		return false
	}
	deletes := slices.ContainsFunc(w.steps, func(s step) bool { return s.action == deleteCopy })
	return deletes || o.now.Sub(o.origin.CreationTimestamp.Time) < maxEventAge
}

// emitBlocked emits an Event for each of the first few namespaces that are newly blocked. Each
// Event has its namespace as related object, because Events that differ only in their notes are
// merged into a series.
func (r *reconciler) emitBlocked(o *input, h *versionState, why map[string]string) {
	const most = 3
	news := 0
	for _, namespace := range slices.Sorted(maps.Keys(why)) {
		if h.blocked[namespace] == why[namespace] {
			continue
		}
		news++
		if news > most {
			continue
		}
		related := &corev1.Namespace{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: namespace},
		}
		r.events.Eventf(o.origin, related, corev1.EventTypeWarning, api.ReasonCopyBlocked, actionCopy, "%s",
			api.EventNote(fmt.Sprintf("Not copied everywhere: namespace %s: %s", namespace, why[namespace])))
	}
	if news > most {
		r.events.Eventf(o.origin, nil, corev1.EventTypeWarning, api.ReasonCopyBlocked, actionCopy,
			"Not copied everywhere: %d more namespaces, the first of which have Events of their own", news-most)
	}
	h.blocked = why
}

// problemsByNamespace maps namespaces without a complete copy to the reason.
func problemsByNamespace(blocked map[string]string, failures map[string]failure) map[string]string {
	why := map[string]string{}
	for _, step := range slices.Sorted(maps.Keys(failures)) {
		if s := failures[step]; s.times >= minFailures && why[s.namespace] == "" {
			why[s.namespace] = s.problem
		}
	}
	for namespace, what := range blocked {
		why[namespace] = what + "; delete it, or remove the namespace from the OperatorGroup's targets"
	}
	return why
}
