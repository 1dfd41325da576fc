package dryrun

import (
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api/providedapis"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// Groups are the OperatorGroups that determine which APIs the versions of a namespace may provide.
type Groups struct {
	// Own is the OperatorGroup of the namespace, with its targets in its status; nil if it is not known.
	Own *operatorsv1.OperatorGroup
	// All are the OperatorGroups of all namespaces.
	All []operatorsv1.OperatorGroup
}

// refusalOf returns why a version of a plan cannot be installed; nil if each can. copied reports whether its name is the
// name of a copy.
func (r *Request) refusalOf(plan *installPlan) (refusal *Refusal, copied bool) {
	for _, c := range plan.choices {
		if from := r.Copied[c.Bundle]; from != "" {
			err := &plansteps.CopiedVersionError{Namespace: r.Input.Namespace, Name: c.Bundle, From: from}
			return &Refusal{Reason: err.Reason(), Remedy: err.Remedy()}, true
		}
	}
	for _, c := range plan.choices {
		if found := r.Groups.evaluate(r.Input.Namespace, c); found.Blocks() {
			return &Refusal{
				Reason: fmt.Sprintf("ClusterServiceVersion %s/%s would fail: %s", r.Input.Namespace, c.Bundle, found.Reason()), Remedy: found.Remedy(),
			}, false
		}
	}
	return nil, false
}

// evaluate returns the effect of the OperatorGroups on a version of a catalog.
func (g Groups) evaluate(namespace string, c *resolution.Choice) providedapis.Finding {
	if g.Own == nil || c.Entry == nil {
		return providedapis.Finding{}
	}
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	csv.Namespace, csv.Name = namespace, c.Bundle
	for _, api := range c.Entry.Bundle.Subject.GVKs {
		owned := &csv.Spec.CustomResourceDefinitions.Owned
		// A catalog does not have the plural name, which does not matter here.
		*owned = append(*owned, operatorsv1alpha1.CRDDescription{Name: "any." + api.Group, Version: api.Version, Kind: api.Kind})
	}
	return providedapis.Evaluate(g.Own, g.All, csv)
}
