package approve

import (
	"context"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/apply/warnings"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// dryRunResult is the result of creating the objects of an InstallPlan as a dry run.
type dryRunResult struct {
	// Warnings are the API server's warnings, for example about unknown fields.
	Warnings []warning `json:"warnings,omitempty"`
	// Unchecked counts the objects that the API server did not validate: the user may not create
	// them, or their kind is not served yet.
	Unchecked int `json:"unchecked,omitempty"`
}

// warning holds the API server's warnings about one object.
type warning struct {
	Kind  string   `json:"kind"`
	Name  string   `json:"name"`
	Texts []string `json:"texts"`
}

// dryRunObjects creates the objects that an InstallPlan holds, as a dry run. The API server sends
// warnings with refusals, too. An object that already exists counts as checked.
func dryRunObjects(ctx context.Context, c client.Client, p *operatorsv1alpha1.InstallPlan) dryRunResult {
	var found dryRunResult
	c = client.NewDryRunClient(c)
	for _, step := range p.Status.Plan {
		if step == nil {
			continue
		}
		u, ref, err := plansteps.Manifest(step)
		if ref != nil {
			// The Summary counts such steps.
			continue
		}
		if err == nil {
			err = plansteps.CompleteObject(u, step, p.Namespace, nil)
		}
		if err != nil {
			found.Unchecked++
			continue
		}
		collector := &warnings.Collector{}
		_, _, err = apply.CreateIfAbsent(collector.In(ctx), c, u)
		texts := collector.Texts()
		switch {
		case len(texts) > 0:
			found.Warnings = append(found.Warnings, warning{Kind: step.Resource.Kind, Name: step.Resource.Name, Texts: texts})
		case err != nil && !validated(err):
			found.Unchecked++
		}
	}
	return found
}

// validated reports whether the API server validated the object that it refused.
func validated(err error) bool {
	return !apimeta.IsNoMatchError(err) && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsAlreadyExists(err))
}
