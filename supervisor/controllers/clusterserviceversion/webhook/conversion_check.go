package webhook

import (
	"context"
	"errors"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/crd/upgradesafety"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// An install plan checks the conversions of a version before it creates the version. The supervisor
// checks a definition that is created or changed later here, before it writes the definition.

// refusal returns why a version may not convert one of its existing definitions; empty when it may
// convert all. It skips definitions that already convert through a Service of the version: each
// change of them is checked.
func (c *conversions) refusal(ctx context.Context, s *State) (string, error) {
	for i := range s.version.CSV.Spec.WebhookDefinitions {
		declared := &s.version.CSV.Spec.WebhookDefinitions[i]
		if declared.Type != operatorsv1alpha1.ConversionWebhook {
			continue
		}
		for _, name := range declared.ConversionCRDs {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			err := c.crds.Get(ctx, client.ObjectKey{Name: name}, crd)
			if apierrors.IsNotFound(err) {
				continue // a requirement
			}
			if err != nil {
				return "", fmt.Errorf("getting CustomResourceDefinition %s: %w", name, err)
			}
			if s.converts(namedService(crd)) {
				continue
			}
			err = c.checkAllowed(ctx, s, crd)
			if refusal, refused := errors.AsType[*upgradesafety.RefusalError](err); refused {
				return refusal.Error(), nil
			}
			if err != nil {
				return "", err
			}
		}
	}
	return "", nil
}

// checkAllowed returns an *upgradesafety.RefusalError for a definition that a version may not change. The
// definition comes from the cache.
func (c *conversions) checkAllowed(ctx context.Context, s *State, crd *apiextensionsv1.CustomResourceDefinition) error {
	csv := s.version.CSV
	request := upgradesafety.Request{
		Namespace: csv.Namespace, Version: csv.Name, Unbounded: s.scope.Unbounded(), Name: crd.Name, Converted: true, Live: crd,
	}
	if !request.Unbounded {
		var err error
		if request.Own, request.Others, err = c.installedFor(ctx, s, crd); err != nil {
			return err
		}
		if request.Live, err = c.withManagers(ctx, crd); err != nil {
			return err
		}
	}
	_, err := upgradesafety.Decide(request)
	return err //nolint:wrapcheck // names the definition
}

// withManagers returns a definition with its field managers, which the cache drops.
//
// They may be newer than the definition. The API server then refuses a change by the resource
// version.
func (c *conversions) withManagers(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(crd), live); err != nil {
		return nil, fmt.Errorf("getting the field managers of CustomResourceDefinition %s: %w", crd.Name, err)
	}
	crd = crd.DeepCopy()
	crd.ManagedFields = live.ManagedFields
	return crd, nil
}

// installedFor returns whether a definition was installed with a version of the operator, and
// the existing versions of other operators that it was installed with.
func (c *conversions) installedFor(ctx context.Context, s *State, crd *apiextensionsv1.CustomResourceDefinition,
) (own bool, others []types.NamespacedName, err error) {
	for _, name := range plansteps.InstalledAlongside(crd) {
		other := &operatorsv1alpha1.ClusterServiceVersion{}
		err := c.client.Get(ctx, name, other)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return false, nil, fmt.Errorf("getting ClusterServiceVersion %s: %w", name, err)
		case s.isOfOperator(other):
			own = true
		default:
			others = append(others, name)
		}
	}
	return own, others, nil
}
