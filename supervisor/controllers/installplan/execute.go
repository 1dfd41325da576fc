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
	"github.com/chandlery/chandlery/supervisor/apply/warnings"
	"github.com/chandlery/chandlery/supervisor/plan"
)

// readOnly makes a read from the cache return shared objects instead of copies.
const readOnly = client.UnsafeDisableDeepCopy

// execution is one pass over the steps of a plan.
type execution struct {
	// cached reads what the controller watches.
	cached client.Reader
	// client has the supervisor's own rights. It reads, and writes CustomResourceDefinitions unless
	// crds.asAccount is set.
	client client.Client
	// steps writes everything else. It has the rights of the account that the OperatorGroup names,
	// or else the rights of client.
	steps   client.Client
	account *account
	content *content
	// checker checks custom resources before their definition changes.
	checker   *checker
	crds      crdAccess
	namespace string
	// plan is the name of the InstallPlan.
	plan string
	// reverts names the version whose definitions replace newer ones; empty for none.
	reverts string
	// owners holds the ClusterServiceVersions that own the applied objects, by name.
	owners map[string]*owner
	// definitions holds the state of the CustomResourceDefinitions of steps.
	definitions map[*operatorsv1alpha1.Step]*definition
	// outside holds the steps of this pass whose applied objects are cluster-scoped.
	outside []*operatorsv1alpha1.Step
	// manifestWarnings holds the warnings about the manifests of steps, by the index of the step.
	manifestWarnings map[int][]string
	reporter         reporter
}

// run applies the steps that are not done yet and updates their status. The first step that fails
// ends the pass; the error is a *stepError.
//
// Checks that need no write come first. A plan with a forbidden kind or an unsafe
// CustomResourceDefinition in its last step therefore changes nothing.
func (e *execution) run(ctx context.Context, steps []*operatorsv1alpha1.Step) error {
	if err := e.examine(ctx, steps); err != nil {
		return e.explained(err)
	}
	failure := e.each(ctx, steps)
	if err := e.confirmOwners(ctx, steps); err != nil {
		return e.explained(err)
	}
	if failure != nil {
		return e.explained(failure)
	}
	if err := e.awaitAPIs(ctx, steps); err != nil {
		return e.explained(err)
	}
	return nil
}

// explained adds the remedy to an error.
func (e *execution) explained(err *stepError) error {
	refused := e.account
	own := err.step.Resource.Kind == kindCRD && !e.crds.asAccount
	if own || errors.Is(err.err, errOwnRead) {
		// The account is not concerned with the supervisor's own rights.
		refused = nil
	}
	err.advice = adviceFor(err.err, refused)
	return err
}

// examine checks the steps before the first of them is applied.
func (e *execution) examine(ctx context.Context, steps []*operatorsv1alpha1.Step) *stepError {
	for _, s := range steps {
		if applied(s.Status) {
			continue
		}
		if err := e.refusal(s); err != nil {
			if errors.Is(err, errUnsupported) {
				s.Status = operatorsv1alpha1.StepStatusUnsupportedResource
			}
			return &stepError{step: s, err: err}
		}
	}
	for _, s := range steps {
		if applied(s.Status) || s.Status == operatorsv1alpha1.StepStatusWaitingForAPI || s.Resource.Kind != kindCRD {
			continue
		}
		if err := e.prepare(ctx, s); err != nil {
			return &stepError{step: s, err: err}
		}
	}
	return guardAllConversions(ctx, e, steps)
}

// refusal returns an error if a plan must not contain a step.
func (e *execution) refusal(s *operatorsv1alpha1.Step) error {
	if s.Resource.Group == groupAPIExtensions && s.Resource.Kind == kindCRD && s.Resource.Version == "v1beta1" {
		return fmt.Errorf("%w: Kubernetes 1.22 removed apiextensions.k8s.io/v1beta1; ask the author of %s for a bundle whose CustomResourceDefinitions are of apiextensions.k8s.io/v1", errUnsupported, s.Resolving)
	}
	_, allowed := plan.ScopeOf(schema.GroupKind{Group: s.Resource.Group, Kind: s.Resource.Kind})
	u, ref, err := plan.Manifest(s)
	if err == nil && ref == nil {
		err = plan.Place(u, s, e.namespace)
	}
	// A Subscription that the plan generates does not come from a bundle.
	generated := u != nil && plan.IsGenerated(u, e.plan) && s.Status != operatorsv1alpha1.StepStatusUnsupportedResource
	if allowed || generated {
		return err
	}
	return fmt.Errorf("%w; ask the author of %s to remove it", errUnsupported, s.Resolving)
}

// each applies the steps in order.
func (e *execution) each(ctx context.Context, steps []*operatorsv1alpha1.Step) *stepError {
	for i, s := range steps {
		if applied(s.Status) {
			continue
		}
		heard := &warnings.Collector{}
		status, err := e.step(heard.In(ctx), s)
		if texts := heard.Texts(); err == nil || len(texts) > 0 {
			e.recordWarnings(ctx, i, s, texts)
		}
		if err != nil {
			if errors.Is(err, errOwnerGone) {
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

// startOver resets every step of a version to be applied again: the objects of a deleted version
// are deleted too. Steps with unsupported objects stay as they are.
func startOver(steps []*operatorsv1alpha1.Step, csv string) {
	for _, s := range steps {
		if s.Resolving == csv && s.Status != operatorsv1alpha1.StepStatusUnsupportedResource {
			s.Status = operatorsv1alpha1.StepStatusUnknown
		}
	}
}

// step applies one step and returns its new status.
func (e *execution) step(ctx context.Context, s *operatorsv1alpha1.Step) (operatorsv1alpha1.StepStatus, error) {
	if s.Resource.Kind == kindCRD {
		return e.applyCRD(ctx, s)
	}
	u, err := e.content.manifest(ctx, s)
	if err != nil {
		return "", err
	}
	switch u.GetKind() {
	case operatorsv1alpha1.ClusterServiceVersionKind:
		return e.version(ctx, u, s)
	case operatorsv1alpha1.SubscriptionKind:
		return e.subscribe(ctx, u)
	}
	if s.Resource.Kind == kindSecret {
		return e.pullSecret(ctx, u)
	}
	scope, _ := plan.ScopeOf(u.GroupVersionKind().GroupKind())
	owner, err := e.owner(ctx, s.Resolving)
	if err != nil {
		return "", err
	}
	if scope == plan.Namespaced {
		u.SetOwnerReferences([]metav1.OwnerReference{owner.reference})
	}
	setComponent(u, owner.pkg, e.namespace)
	result, err := e.object(ctx, u, owner)
	if err == nil && scope == plan.ClusterScoped {
		e.outside = append(e.outside, s)
	}
	return statusOf(result), err
}

// labelComponent sets the component label of a definition to the package of a version of the plan.
func (e *execution) labelComponent(ctx context.Context, crd *unstructured.Unstructured, version string) error {
	csv, err := e.content.version(ctx, version)
	if err != nil || csv == nil {
		return err
	}
	setComponent(crd, plan.PackageOf(csv), e.namespace)
	return nil
}

// setComponent labels an object as a component of the Operator of a package. This saves the
// controller of Operators a write. An empty package sets nothing.
func setComponent(u *unstructured.Unstructured, pkg, namespace string) {
	if pkg == "" {
		return
	}
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[plan.ComponentLabel(pkg, namespace)] = ""
	u.SetLabels(labels)
}

// version creates a ClusterServiceVersion. It never overwrites an existing one, which may have
// changed since.
func (e *execution) version(ctx context.Context, u *unstructured.Unstructured, s *operatorsv1alpha1.Step) (operatorsv1alpha1.StepStatus, error) {
	if err := e.ownedElsewhere(ctx, u); err != nil {
		return "", err
	}
	made, result, err := apply.Create(ctx, e.steps, u)
	if err != nil {
		return "", err
	}
	if made != nil {
		e.owners[s.Resolving] = ownerOf(made)
		rereadRecorded(e.definitions, types.NamespacedName{Namespace: e.namespace, Name: s.Resolving})
		return statusOf(result), nil
	}
	// A version that is being deleted, or a copy, does not satisfy the next steps.
	_, err = e.owner(ctx, s.Resolving)
	return statusOf(result), err
}

// subscribe creates the Subscription of a package that an operator needs, unless the namespace
// already has one.
func (e *execution) subscribe(ctx context.Context, u *unstructured.Unstructured) (operatorsv1alpha1.StepStatus, error) {
	pkg, _, err := unstructured.NestedString(u.Object, "spec", "name")
	if err != nil {
		return "", fmt.Errorf("reading spec.name of Subscription %s: %w", u.GetName(), err)
	}
	list := &operatorsv1alpha1.SubscriptionList{}
	if err := e.cached.List(ctx, list, client.InNamespace(e.namespace), readOnly); err != nil {
		return "", fmt.Errorf("listing Subscriptions of namespace %s: %w", e.namespace, err)
	}
	for i := range list.Items {
		if list.Items[i].Spec != nil && list.Items[i].Spec.Package == pkg && list.Items[i].DeletionTimestamp.IsZero() {
			return operatorsv1alpha1.StepStatusPresent, nil
		}
	}
	u.SetNamespace(e.namespace)
	_, result, err := apply.Create(ctx, e.steps, u)
	return statusOf(result), err
}

// pullSecret applies a step of a plan of another system: a copy of the catalog's credentials. It
// accepts an existing Secret and never creates one. Users who may read the Secrets of a namespace
// need not have access to those of its catalogs.
func (e *execution) pullSecret(ctx context.Context, u *unstructured.Unstructured) (operatorsv1alpha1.StepStatus, error) {
	key := client.ObjectKey{Namespace: e.namespace, Name: u.GetName()}
	live, err := e.read(ctx, u.GroupVersionKind(), key)
	if err != nil {
		return "", err
	}
	if live == nil {
		return "", fmt.Errorf("%w; make Secret %s with the credentials for the operator's images", errSecretMissing, key)
	}
	return operatorsv1alpha1.StepStatusPresent, nil
}

// read reads an object from the API server; it returns nil when there is none.
func (e *execution) read(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(kind)
	if err := e.client.Get(ctx, key, live); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil //nolint:nilnil // the doc comment says what nil means
		}
		return nil, fmt.Errorf("%w %s %s: %w", errOwnRead, kind.Kind, key.Name, err)
	}
	return live, nil
}

func statusOf(r apply.Result) operatorsv1alpha1.StepStatus {
	switch r {
	case "":
		return ""
	case apply.Created:
		return operatorsv1alpha1.StepStatusCreated
	default:
		return operatorsv1alpha1.StepStatusPresent
	}
}
