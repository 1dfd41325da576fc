package failover

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
)

// report reports a successful action in the log, a metric, and Events on the CatalogSource and
// the pod.
func (a *actor) report(ctx context.Context, action Action, seen *clusterState) {
	failovers.WithLabelValues(string(action.Verb), string(action.Reason)).Inc()
	log.FromContext(ctx).Info("Acting on replica", "action", action.Verb, "reason", action.Reason,
		"catalogSource", action.Catalog.String(), "pod", action.Replica.Name, "node", action.Replica.Node, "message", action.Message)
	kind := corev1.EventTypeWarning
	if action.Verb == MarkReady {
		kind = corev1.EventTypeNormal
	}
	source, pod := seen.sources[action.Catalog], seen.pods[action.Replica.UID]
	node := &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: action.Replica.Node},
	}
	note := api.EventNote(fmt.Sprintf("%s pod %s: %s", action.Verb.pastTense(), action.Replica.Name, action.Message))
	a.recorder.Eventf(source, pod, kind, string(action.Reason), action.Verb.pastTense(), "%s", note)
	a.recorder.Eventf(pod, node, kind, string(action.Reason), action.Verb.pastTense(), "%s", note)
}

// pastTense returns the past form of the verb for messages.
func (v Verb) pastTense() string {
	switch v {
	case MarkNotReady:
		return "Marked not ready"
	case MarkReady:
		return "Marked ready"
	default:
		return "Deleted"
	}
}
