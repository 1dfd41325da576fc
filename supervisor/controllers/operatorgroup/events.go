package operatorgroup

import (
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"

	"github.com/chandlery/chandlery/supervisor/api"
)

// emitEvents emits Events for new problems and for changed targets of a group.
func emitEvents(recorder events.EventRecorder, group *operatorsv1.OperatorGroup, want operatorsv1.OperatorGroupStatus) {
	for _, kind := range []string{
		operatorsv1.MutlipleOperatorGroupCondition, operatorsv1.OperatorGroupServiceAccountCondition, api.ConditionTargetsResolved,
	} {
		now := apimeta.FindStatusCondition(want.Conditions, kind)
		before := apimeta.FindStatusCondition(group.Status.Conditions, kind)
		if now == nil || (before != nil && before.Message == now.Message) {
			continue
		}
		recorder.Eventf(group, nil, corev1.EventTypeWarning, now.Reason, "ResolveTargets", "%s", now.Message)
	}
	if group.Status.LastUpdated != nil && !slices.Equal(group.Status.Namespaces, want.Namespaces) {
		recorder.Eventf(group, nil, corev1.EventTypeNormal, "TargetsChanged", "ResolveTargets",
			"Target namespaces are now %q", want.Namespaces)
	}
}
