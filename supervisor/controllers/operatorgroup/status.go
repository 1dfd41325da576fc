package operatorgroup

import (
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
)

// TargetsInvalidReason is the reason of the condition api.ConditionTargetsResolved for invalid
// targets.
const TargetsInvalidReason = "InvalidTargets"

// statusInput holds the inputs of a group's status.
type statusInput struct {
	Group      *operatorsv1.OperatorGroup
	Siblings   []string    // names of the other groups in the namespace
	Namespaces []namespace // all namespaces; filled for groups with a selector

	// Account is the ServiceAccount in the spec; nil if it does not exist.
	Account *metav1.PartialObjectMetadata
}

// status returns the wanted status of a group. LastUpdated changes only together with another
// field, so an unchanged group is never written. Invalid targets leave the last valid ones in the
// status and set a condition.
func status(o statusInput, now time.Time) operatorsv1.OperatorGroupStatus {
	want := o.Group.Status.DeepCopy()
	namespaces, err := targets(o.Group.Spec, o.Namespaces)
	setTargets(want, namespaces, err, o.Group.Generation, now)
	setMultiple(want, o, now)
	setAccount(want, o, now)
	if want.LastUpdated == nil || !equality.Semantic.DeepEqual(*want, o.Group.Status) {
		want.LastUpdated = &metav1.Time{Time: now}
	}
	return *want
}

func setTargets(want *operatorsv1.OperatorGroupStatus, namespaces []string, err error, generation int64, now time.Time) {
	if err != nil {
		apimeta.SetStatusCondition(&want.Conditions, metav1.Condition{
			Type: api.ConditionTargetsResolved, Status: metav1.ConditionFalse, Reason: TargetsInvalidReason,
			Message: err.Error(), ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
		})
		return
	}
	apimeta.RemoveStatusCondition(&want.Conditions, api.ConditionTargetsResolved)
	if !slices.Equal(want.Namespaces, namespaces) {
		want.Namespaces = namespaces
	}
}

func setMultiple(want *operatorsv1.OperatorGroupStatus, o statusInput, now time.Time) {
	if len(o.Siblings) == 0 {
		apimeta.RemoveStatusCondition(&want.Conditions, operatorsv1.MutlipleOperatorGroupCondition)
		return
	}
	apimeta.SetStatusCondition(&want.Conditions, metav1.Condition{
		Type:               operatorsv1.MutlipleOperatorGroupCondition,
		Status:             metav1.ConditionTrue,
		Reason:             operatorsv1.MultipleOperatorGroupsReason,
		Message:            olmtext.MultipleGroups,
		ObservedGeneration: o.Group.Generation,
		LastTransitionTime: metav1.NewTime(now),
	})
}
