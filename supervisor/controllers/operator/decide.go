package operator

import (
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// action is what is to be done about an Operator.
type action string

const (
	// rest is to do nothing.
	rest action = "rest"
	// create is to make an Operator and give it its status.
	create action = "create"
	// show is to write the status.
	show action = "show"
	// remove is to delete an Operator that has lost its last component.
	remove action = "remove"
)

// decide says what is to be done about the Operator of a label, nil where there is none,
// when these are its components.
//
// One that is deleted comes back while components remain, since it is only a view of
// them. One that never had any was made by a person, and stays.
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
