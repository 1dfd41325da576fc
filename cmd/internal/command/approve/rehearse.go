package approve

import (
	"context"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/apply/warnings"
	"github.com/chandlery/chandlery/supervisor/plan"
)

// rehearsal is what the API server says of the objects of a plan when it is asked to create
// them and to store nothing.
type rehearsal struct {
	// Warnings are about fields that would not be stored, and the like.
	Warnings []warning `json:"warnings,omitempty"`
	// Unchecked counts the objects that the API server did not look at: the right to create them
	// is missing, or their kind is not served yet.
	Unchecked int `json:"unchecked,omitempty"`
}

// warning is what the API server warns about in one object.
type warning struct {
	Kind  string   `json:"kind"`
	Name  string   `json:"name"`
	Texts []string `json:"texts"`
}

// rehearse asks the API server to create the objects of a plan that it holds itself, as a dry
// run. Warnings come with refusals, too: one that is there already counts as looked at.
func rehearse(ctx context.Context, c client.Client, p *operatorsv1alpha1.InstallPlan) rehearsal {
	var found rehearsal
	c = client.NewDryRunClient(c)
	for _, step := range p.Status.Plan {
		if step == nil {
			continue
		}
		u, ref, err := plan.Manifest(step)
		if ref != nil {
			// The Proposal counts it.
			continue
		}
		if err == nil {
			err = plan.Place(u, step, p.Namespace)
		}
		if err != nil {
			found.Unchecked++
			continue
		}
		heard := &warnings.Collector{}
		_, _, err = apply.IfAbsent(heard.In(ctx), c, u)
		texts := heard.Texts()
		switch {
		case len(texts) > 0:
			found.Warnings = append(found.Warnings, warning{Kind: step.Resource.Kind, Name: step.Resource.Name, Texts: texts})
		case err != nil && !looked(err):
			found.Unchecked++
		}
	}
	return found
}

// looked reports whether the API server has read the object that it refused.
func looked(err error) bool {
	return !apimeta.IsNoMatchError(err) && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsAlreadyExists(err))
}
