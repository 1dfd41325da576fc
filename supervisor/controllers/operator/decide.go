package operator

import (
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// action is the action for an Operator.
type action string

const (
	// rest does nothing.
	rest action = "rest"
	// create creates the Operator and writes its status.
	create action = "create"
	// show writes the status.
	show action = "show"
	// remove deletes an Operator that has lost its last component.
	remove action = "remove"
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
		return rest, want
	case have == nil:
		return create, want
	case !have.DeletionTimestamp.IsZero():
		return rest, want
	case len(refs) == 0 && have.Status.Components != nil && len(have.Status.Components.Refs) > 0:
		return remove, want
	case equality.Semantic.DeepEqual(have.Status, want):
		return rest, want
	default:
		return show, want
	}
}
