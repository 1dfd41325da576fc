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
)

const (
	// actionCopy is the action of all Events of this package.
	actionCopy = "Copy"
	// newcomer is the maximum age of a version for an Event that it is not copied, unless a copy
	// was just withdrawn. Older versions had the Event before this process started.
	newcomer = 10 * time.Minute
	// worthTelling is the number of failures of a step before an Event reports it. A short outage
	// of the API server causes no Event.
	worthTelling = 3
)

// tell emits Events on a version about relevant changes.
func (r *reconciler) tell(o *observation, h *history, w work) {
	if o.origin == nil {
		return
	}
	r.tellBlocked(o, h, hindrances(w.blocked, h.setbacks))
	switch {
	case w.place.stand != spread:
	case !w.place.disabled:
		h.announced = ""
	case announceDisabled(o, h, w):
		h.announced = o.origin.UID
		r.events.Eventf(o.origin, nil, corev1.EventTypeWarning, operatorsv1.DisabledCopiedCSVsConditionType, actionCopy,
			"CSV copying disabled for %s/%s", o.key.Namespace, o.key.Name)
	}
}

// announceDisabled reports whether to emit the Event that a version is not copied.
func announceDisabled(o *observation, h *history, w work) bool {
	if h.announced == o.origin.UID {
		return false
	}
	withdrawn := slices.ContainsFunc(w.steps, func(s step) bool { return s.action == withdraw })
	return withdrawn || o.now.Sub(o.origin.CreationTimestamp.Time) < newcomer
}

// tellBlocked emits an Event for each of the first few namespaces that are newly blocked. Each
// Event has its namespace as related object, because Events that differ only in their notes are
// merged into a series.
func (r *reconciler) tellBlocked(o *observation, h *history, why map[string]string) {
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

// hindrances maps namespaces without a complete copy to the reason.
func hindrances(blocked map[string]string, setbacks map[string]setback) map[string]string {
	why := map[string]string{}
	for _, step := range slices.Sorted(maps.Keys(setbacks)) {
		if s := setbacks[step]; s.times >= worthTelling && why[s.namespace] == "" {
			why[s.namespace] = s.problem
		}
	}
	for namespace, what := range blocked {
		why[namespace] = what + "; delete that one, or take the namespace out of the OperatorGroup's targets"
	}
	return why
}
