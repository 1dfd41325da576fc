package operator

import (
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// action is the action for an Operator.
type action string

const (
	// actionNone does nothing.
	actionNone action = "none"
	// actionCreate creates the Operator and writes its status.
	actionCreate action = "create"
	// actionUpdateStatus writes the status.
	actionUpdateStatus action = "update status"
	// actionDelete deletes an Operator that has lost its last component.
	actionDelete action = "delete"
)

// decide returns the action for an Operator and its wanted status. have is nil if there is no
// Operator.
//
// An Operator that is deleted while components remain is recreated, because it is only a view of
// them. An Operator that never had components was created by a user and stays.
func decide(have *operatorsv1.Operator, key string, refs []operatorsv1.RichReference) (action, operatorsv1.OperatorStatus) {
	want := operatorsv1.OperatorStatus{Components: components(key, refs)}
	switch {
	case have == nil && len(refs) == 0:
		return actionNone, want
	case have == nil:
		return actionCreate, want
	case !have.DeletionTimestamp.IsZero():
		return actionNone, want
	case len(refs) == 0 && have.Status.Components != nil && len(have.Status.Components.Refs) > 0:
		return actionDelete, want
	case equality.Semantic.DeepEqual(have.Status, want):
		return actionNone, want
	default:
		return actionUpdateStatus, want
	}
}
