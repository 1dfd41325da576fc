package clusterserviceversion

import (
	"context"
	"errors"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/crdguard"
	"github.com/chandlery/chandlery/supervisor/plan"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// An install plan checks the conversions of a version before it creates the version. The supervisor
// checks a definition that is created or changed later here, before it writes the definition.

// observeServingAccess returns why the OperatorGroup of a version does not allow one of its
// webhooks; empty when it allows all. It reviews only webhooks that have to be written. A new
// certificate alone does not count.
func (r *reconciler) observeServingAccess(ctx context.Context, s *scope, found []front) (string, error) {
	if !s.served.complete() || slices.ContainsFunc(found, func(f front) bool { return f.widened }) {
		refused, err := r.observeWebhookAccess(ctx, s)
		if err != nil || refused != "" {
			return refused, err
		}
	}
	return r.observeConversionAccess(ctx, s)
}

// isWebhook reports whether an object is a webhook configuration.
func isWebhook(object *unstructured.Unstructured) bool {
	kind := object.GroupVersionKind()
	return kind == validatingKind() || kind == mutatingKind()
}

// observeConversionAccess returns why a version may not convert one of its existing definitions;
// empty when it may convert all. It skips definitions that already convert through a Service of the
// version: each change of them is guarded.
func (r *reconciler) observeConversionAccess(ctx context.Context, s *scope) (string, error) {
	for i := range s.CSV.Spec.WebhookDefinitions {
		if s.CSV.Spec.WebhookDefinitions[i].Type != operatorsv1alpha1.ConversionWebhook {
			continue
		}
		for _, name := range s.CSV.Spec.WebhookDefinitions[i].ConversionCRDs {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			err := r.crds.Get(ctx, client.ObjectKey{Name: name}, crd)
			if apierrors.IsNotFound(err) {
				continue // a requirement
			}
			if err != nil {
				return "", fmt.Errorf("getting CustomResourceDefinition %s: %w", name, err)
			}
			if s.served.converts(namedService(crd), s.CSV.Namespace) {
				continue
			}
			err = r.guardConversion(ctx, s, crd)
			if refusal, refused := errors.AsType[*crdguard.RefusalError](err); refused {
				return refusal.Error(), nil
			}
			if err != nil {
				return "", err
			}
		}
	}
	return "", nil
}

// converts reports whether a Service belongs to the version.
func (s *served) converts(service *types.NamespacedName, namespace string) bool {
	return service != nil && service.Namespace == namespace &&
		slices.ContainsFunc(s.servers, func(server webhook.Server) bool { return server.ServiceName() == service.Name })
}

// guardConversion returns a *crdguard.RefusalError for a definition that a version may not change.
// The definition comes from the cache.
func (r *reconciler) guardConversion(ctx context.Context, s *scope, crd *apiextensionsv1.CustomResourceDefinition) error {
	request := crdguard.Request{
		Namespace: s.CSV.Namespace, Version: s.CSV.Name, Unbounded: isUnbounded(s.Groups), Name: crd.Name, Converted: true, Live: crd,
	}
	if !request.Unbounded {
		var err error
		if request.Own, request.Others, err = r.installedFor(ctx, s, crd); err != nil {
			return err
		}
		if request.Live, err = r.withManagers(ctx, crd); err != nil {
			return err
		}
	}
	_, err := crdguard.Decide(request)
	return err //nolint:wrapcheck // names the definition
}

// withManagers returns a definition with its field managers, which the cache drops.
//
// They may be newer than the definition. The API server then refuses a change by the resource
// version.
func (r *reconciler) withManagers(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(crd), live); err != nil {
		return nil, fmt.Errorf("getting the field managers of CustomResourceDefinition %s: %w", crd.Name, err)
	}
	crd = crd.DeepCopy()
	crd.ManagedFields = live.ManagedFields
	return crd, nil
}

// installedFor returns whether a definition was installed with a version of the operator, and
// the existing versions of other operators that it was installed with.
func (r *reconciler) installedFor(ctx context.Context, s *scope, crd *apiextensionsv1.CustomResourceDefinition,
) (own bool, others []types.NamespacedName, err error) {
	for _, name := range plan.Alongside(crd) {
		other := &operatorsv1alpha1.ClusterServiceVersion{}
		err := r.client.Get(ctx, name, other)
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

// isOfOperator reports whether another version is of the same operator: of its package, or on its
// chain of replacements and of no other package. The author of a bundle chooses what it replaces.
func (s *scope) isOfOperator(other *operatorsv1alpha1.ClusterServiceVersion) bool {
	pkg, theirs := plan.PackageOf(s.CSV), plan.PackageOf(other)
	switch {
	case other.Namespace == s.CSV.Namespace && other.Name == s.CSV.Name, plan.IsOfPackage(other, pkg):
		return true
	case theirs != "" && theirs != pkg:
		return false
	}
	return other.Namespace == s.CSV.Namespace && slices.Contains(s.served.kin.Chain, other.Name)
}
