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
	// actionCopy is what all Events of this package are about.
	actionCopy = "Copy"
	// newcomer is how old a version may be of which it is said, without a copy having
	// been taken away, that it is not copied. An older one was announced before this
	// process began.
	newcomer = 10 * time.Minute
	// worthTelling is how often a step has to have failed for somebody to be told. An API
	// server that is away for a moment is not the version's trouble.
	worthTelling = 3
)

// tell records Events on a version about what has changed for its users.
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

// announceDisabled says whether it is news that a version is not copied.
func announceDisabled(o *observation, h *history, w work) bool {
	if h.announced == o.origin.UID {
		return false
	}
	withdrawn := slices.ContainsFunc(w.steps, func(s step) bool { return s.action == withdraw })
	return withdrawn || o.now.Sub(o.origin.CreationTimestamp.Time) < newcomer
}

// tellBlocked records what has come into the way since this was told last: an Event for
// each of the first few namespaces. Each is related to its namespace, because two Events
// that differ in their notes alone are taken for one that happens again.
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

// hindrances says of namespaces that have no copy, or not what belongs to it, why.
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
