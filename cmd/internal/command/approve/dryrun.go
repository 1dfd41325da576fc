package approve

import (
	"context"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	// Refused are objects of kinds that bundles cannot contain. The supervisor fails a plan with them.
	Refused []refused `json:"refused,omitempty"`
}

// refused is an object of a kind that bundles cannot contain.
type refused struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Argument is the argument of the supervisor, and of this command, that allows the kind. It is empty if no
	// argument may allow it.
	Argument string `json:"argument,omitempty"`
}

// warning holds the API server's warnings about one object.
type warning struct {
	Kind  string   `json:"kind"`
	Name  string   `json:"name"`
	Texts []string `json:"texts"`
}

// dryRunObjects creates the objects that an InstallPlan holds, as a dry run. The API server sends
// warnings with refusals, too. An object that already exists counts as checked.
func dryRunObjects(ctx context.Context, c client.Client, p *operatorsv1alpha1.InstallPlan, kinds plansteps.Kinds) dryRunResult {
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
			err = plansteps.CompleteObject(u, step, p.Namespace, kinds)
		}
		if err != nil {
			found.Unchecked++
			continue
		}
		if gvk := u.GroupVersionKind(); !isAllowed(gvk.GroupKind(), kinds) {
			found.Refused = append(found.Refused, refused{Kind: gvk.Kind, Name: u.GetName(), Argument: plansteps.Argument(gvk, c.RESTMapper())})
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

// isAllowed reports whether a plan may contain objects of a kind. Subscriptions come from the resolution, not from a
// bundle.
func isAllowed(kind schema.GroupKind, kinds plansteps.Kinds) bool {
	_, allowed := kinds.ScopeOf(kind)
	return allowed || kind == operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.SubscriptionKind).GroupKind()
}

// validated reports whether the API server validated the object that it refused.
func validated(err error) bool {
	return !apimeta.IsNoMatchError(err) && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsAlreadyExists(err))
}
