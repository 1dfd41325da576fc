package installplan

import (
	"context"
	"errors"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/plan"
)

// bundleReader fetches a bundle's manifests from the catalog that serves it.
type bundleReader interface {
	Bundle(ctx context.Context, catalog types.NamespacedName, pkg, channel, name string) (plan.Bundle, error)
}

// execution is one pass over the steps of a plan.
type execution struct {
	client    client.Client
	bundles   bundleReader
	namespace string
	// plan is the name of the InstallPlan.
	plan string
	// owners holds the ClusterServiceVersions that own what is applied, by name.
	owners map[string]metav1.OwnerReference
	// fetched holds the bundles that this pass had to read, by name.
	fetched map[string]plan.Bundle
}

// run applies the steps that are not done yet and updates their status. The
// first step that fails ends the pass; the error is a *stepError.
func (e *execution) run(ctx context.Context, steps []*operatorsv1alpha1.Step) error {
	for _, s := range steps {
		if applied(s.Status) {
			continue
		}
		status, err := e.step(ctx, s)
		if err != nil {
			switch {
			case errors.Is(err, errUnsupported):
				s.Status = operatorsv1alpha1.StepStatusUnsupportedResource
			case errors.Is(err, errOwnerGone):
				startOver(steps, s.Resolving)
			}
			return &stepError{step: s, err: err}
		}
		if status != s.Status {
			log.FromContext(ctx).V(1).Info("Applied step", "kind", s.Resource.Kind, "name", s.Resource.Name, "status", status)
		}
		s.Status = status
	}
	return nil
}

// startOver makes every step of a version one that has to be applied: with the
// version went what it owned. What a plan may not hold is not tried again.
func startOver(steps []*operatorsv1alpha1.Step, csv string) {
	for _, s := range steps {
		if s.Resolving == csv && s.Status != operatorsv1alpha1.StepStatusUnsupportedResource {
			s.Status = operatorsv1alpha1.StepStatusUnknown
		}
	}
}

// step applies one step and says what became of it.
func (e *execution) step(ctx context.Context, s *operatorsv1alpha1.Step) (operatorsv1alpha1.StepStatus, error) {
	scope, ok := plan.ScopeOf(schema.GroupKind{Group: s.Resource.Group, Kind: s.Resource.Kind})
	if !ok {
		return e.unlisted(ctx, s)
	}
	u, err := e.manifest(ctx, s)
	if err != nil {
		return "", err
	}
	switch u.GetKind() {
	case operatorsv1alpha1.ClusterServiceVersionKind:
		// A version that is there is never overwritten: it may have gone on.
		result, err := apply.Create(ctx, e.client, u)
		if err == nil && result == apply.Unchanged {
			// One that is on its way out is not there for what follows.
			_, err = e.readOwner(ctx, s.Resolving)
		}
		return statusOf(result), err
	case "CustomResourceDefinition":
		return e.applyCRD(ctx, u, s.Status)
	}
	if scope == plan.ClusterScoped {
		result, err := e.applyClusterScoped(ctx, u, s.Resolving)
		return statusOf(result), err
	}
	owner, err := e.owner(ctx, s.Resolving)
	if err != nil {
		return "", err
	}
	u.SetOwnerReferences([]metav1.OwnerReference{owner})
	result, err := apply.Object(ctx, e.client, u)
	return statusOf(result), err
}

// unlisted takes a step of a kind that bundles may not bring: a Subscription that
// the plan itself is to make, or else a refusal.
func (e *execution) unlisted(ctx context.Context, s *operatorsv1alpha1.Step) (operatorsv1alpha1.StepStatus, error) {
	u, _, err := plan.Manifest(s)
	own := err == nil && u != nil && plan.IsGenerated(u, e.plan) && s.Status != operatorsv1alpha1.StepStatusUnsupportedResource
	if !own {
		return "", fmt.Errorf("%w; ask the author of %s to remove it", errUnsupported, s.Resolving)
	}
	return e.subscribe(ctx, u)
}

// subscribe makes the Subscription of a package that an operator needs, unless
// the namespace has one for it by now, whoever made it.
func (e *execution) subscribe(ctx context.Context, u *unstructured.Unstructured) (operatorsv1alpha1.StepStatus, error) {
	pkg, _, err := unstructured.NestedString(u.Object, "spec", "name")
	if err != nil {
		return "", fmt.Errorf("reading spec.name of Subscription %s: %w", u.GetName(), err)
	}
	list := &operatorsv1alpha1.SubscriptionList{}
	if err := e.client.List(ctx, list, client.InNamespace(e.namespace)); err != nil {
		return "", fmt.Errorf("listing Subscriptions of namespace %s: %w", e.namespace, err)
	}
	for i := range list.Items {
		if list.Items[i].Spec != nil && list.Items[i].Spec.Package == pkg && list.Items[i].DeletionTimestamp.IsZero() {
			return operatorsv1alpha1.StepStatusPresent, nil
		}
	}
	u.SetNamespace(e.namespace)
	result, err := apply.Create(ctx, e.client, u)
	return statusOf(result), err
}

// manifest reads a step's object, from the catalog when the plan only refers to
// it.
func (e *execution) manifest(ctx context.Context, s *operatorsv1alpha1.Step) (*unstructured.Unstructured, error) {
	u, ref, err := plan.Manifest(s)
	if err != nil || ref == nil {
		return u, err
	}
	bundle, ok := e.fetched[ref.Bundle]
	if !ok {
		catalog := types.NamespacedName{Namespace: s.Resource.CatalogSourceNamespace, Name: s.Resource.CatalogSource}
		if bundle, err = e.bundles.Bundle(ctx, catalog, ref.Package, ref.Channel, ref.Bundle); err != nil {
			return nil, err
		}
		e.fetched[ref.Bundle] = bundle
	}
	return plan.Resolve(*ref, s, e.namespace, bundle)
}

func statusOf(r apply.Result) operatorsv1alpha1.StepStatus {
	if r == apply.Created {
		return operatorsv1alpha1.StepStatusCreated
	}
	return operatorsv1alpha1.StepStatusPresent
}
