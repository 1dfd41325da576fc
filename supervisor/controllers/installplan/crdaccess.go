package installplan

import (
	"context"
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
)

// crdAccess states how a pass may write CustomResourceDefinitions.
type crdAccess struct {
	// unbounded reports whether the OperatorGroup targets all namespaces and names no
	// service account.
	unbounded bool
	// asAccount reports whether they are written with the rights of the OperatorGroup's
	// service account instead of the supervisor's.
	asAccount bool
	// turns orders the writes of all plans of this process.
	turns *crdTurns
}

// crdWriter returns the client that writes CustomResourceDefinitions.
func crdWriter(e *execution) client.Client {
	if e.crds.asAccount {
		return e.steps
	}
	return e.client
}

// guard decides what the pass does with the CustomResourceDefinition of a step. converted
// reports whether the version of the step declares a conversion webhook for it.
func guard(ctx context.Context, e *execution, s *operatorsv1alpha1.Step, d *definition, converted bool) (crdguard.Decision, error) {
	request := crdguard.Request{
		Namespace: e.namespace, Version: s.Resolving, Unbounded: e.crds.unbounded, Name: d.wanted.GetName(), Converted: converted,
	}
	var err error
	if request.Wanted, err = typedCRD(d.wanted); err != nil {
		return "", err
	}
	return decide(ctx, e, request, d.live)
}

// guardAllConversions checks the conversion webhooks of the versions that are not created yet.
func guardAllConversions(ctx context.Context, e *execution, steps []*operatorsv1alpha1.Step) *stepError {
	for _, s := range steps {
		if applied(s.Status) || s.Resource.Kind != operatorsv1alpha1.ClusterServiceVersionKind {
			continue
		}
		if err := guardConversions(ctx, e, steps, s); err != nil {
			return &stepError{step: s, err: err}
		}
	}
	return nil
}

// guardConversions checks the definitions for which a version declares conversion webhooks and that
// its bundle lacks. The controller of versions changes those definitions too.
func guardConversions(ctx context.Context, e *execution, steps []*operatorsv1alpha1.Step, s *operatorsv1alpha1.Step) error {
	csv, err := e.content.version(ctx, s.Resource.Name)
	if err != nil || csv == nil {
		return err
	}
	for _, name := range conversionCRDs(csv) {
		brought := slices.ContainsFunc(steps, func(other *operatorsv1alpha1.Step) bool {
			return other.Resource.Kind == kindCRD && other.Resource.Name == name && other.Resolving == s.Resolving
		})
		if brought {
			continue
		}
		live, err := e.read(ctx, kindOfCRDs(), client.ObjectKey{Name: name})
		if err != nil {
			return err
		}
		request := crdguard.Request{Namespace: e.namespace, Version: s.Resource.Name, Unbounded: e.crds.unbounded, Name: name, Converted: true}
		if _, err := decide(ctx, e, request, live); err != nil {
			return err
		}
	}
	return nil
}

// decide completes a request with the live definition and its owners, and returns the decision.
func decide(ctx context.Context, e *execution, request crdguard.Request, live *unstructured.Unstructured) (crdguard.Decision, error) {
	if live != nil {
		var err error
		if request.Live, err = typedCRD(live); err != nil {
			return "", err
		}
		if request.Own, request.Others, err = installedWith(ctx, e, request.Live, request.Version); err != nil {
			return "", err
		}
	}
	return crdguard.Decide(request) //nolint:wrapcheck // names the definition
}

// installedWith returns the existing versions that a definition was installed with. own reports
// whether one of them is of the operator of csv; others are versions of other operators.
func installedWith(ctx context.Context, e *execution, live *apiextensionsv1.CustomResourceDefinition, csv string,
) (own bool, others []types.NamespacedName, err error) {
	u, err := e.content.version(ctx, csv)
	if err != nil {
		return false, nil, fmt.Errorf("reading ClusterServiceVersion %s to compare its package: %w", csv, err)
	}
	operator := &owner{name: csv}
	if u != nil {
		operator = ownerOf(u)
	}
	operator.namespace = e.namespace
	for _, name := range plan.Alongside(live) {
		other, err := e.sharer(ctx, name)
		switch {
		case err != nil:
			return false, nil, err
		case other == nil:
		case sameOperator(operator, other) && !ofAnotherPackage(operator, other):
			own = true
		default:
			others = append(others, name)
		}
	}
	return own, others, nil
}

// sharer returns a version that a definition was installed with; nil when it does not exist. There
// may be thousands. It reads only those from the API server that the cache lacks.
func (e *execution) sharer(ctx context.Context, name types.NamespacedName) (metav1.Object, error) {
	cached := &operatorsv1alpha1.ClusterServiceVersion{}
	err := e.cached.Get(ctx, name, cached, readOnly)
	if err == nil {
		return cached, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w ClusterServiceVersion %s, which has the same definition: %w", errOwnRead, name, err)
	}
	live, err := e.claimant(ctx, claim{NamespacedName: name})
	if err != nil || live == nil {
		return nil, err
	}
	return live, nil
}

// conversionCRDs returns the names of the definitions for which a version declares a
// conversion webhook.
func conversionCRDs(csv *unstructured.Unstructured) []string {
	webhooks, _, _ := unstructured.NestedSlice(csv.Object, "spec", "webhookdefinitions")
	var names []string
	for _, o := range webhooks {
		if w, ok := o.(map[string]any); ok && w["type"] == string(operatorsv1alpha1.ConversionWebhook) {
			converted, _, _ := unstructured.NestedStringSlice(w, "conversionCRDs")
			names = append(names, converted...)
		}
	}
	return names
}
