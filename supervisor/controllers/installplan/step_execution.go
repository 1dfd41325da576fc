package installplan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/apply/warnings"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// The API server serves a new kind some ten milliseconds after its definition was created, or five
// seconds where there are several API servers. A pass waits only for the shorter time.
const (
	maxWaitForAPI = 500 * time.Millisecond
	pollForAPI    = 20 * time.Millisecond
)

// execution is one pass over the steps of a plan.
type execution struct {
	// plan is the name of the InstallPlan.
	plan, namespace string
	// byOthers reports whether another client created the plan.
	byOthers bool
	account  *account

	observer *observer
	content  *content
	owners   *owners
	crds     *crdApplier
	objects  *objectApplier
	warnings *warningRecorder
	kinds    listKinds
	// clusterScoped holds the steps of this pass whose applied objects are cluster-scoped, and their kinds.
	clusterScoped []clusterScopedStep
}

// clusterScopedStep is a step with the kind of its cluster-scoped object.
type clusterScopedStep struct {
	step *operatorsv1alpha1.Step
	kind schema.GroupVersionKind
}

// run applies the steps that are not done yet and updates their status. The first step that fails
// ends the pass.
//
// Checks that need no write come first. A plan with a forbidden kind or an unsafe
// CustomResourceDefinition in its last step therefore changes nothing.
func (e *execution) run(ctx context.Context, steps []*operatorsv1alpha1.Step) *stepError {
	err := e.check(ctx, steps)
	if err == nil {
		err = e.applyAll(ctx, steps)
		if unconfirmed := e.confirmOwners(ctx, steps); unconfirmed != nil {
			err = unconfirmed
		}
	}
	if err == nil {
		err = e.awaitAPIs(ctx, steps)
	}
	if err != nil {
		err.err = e.kinds.explain(ctx, err.err)
		err.remedy = e.remedyFor(err)
	}
	return err
}

// remedyFor returns the remedy for an error; empty when there is none.
func (e *execution) remedyFor(err *stepError) string {
	if version, is := errors.AsType[*definitionVersionError](err.err); is {
		return version.remedy(err.step.Resolving)
	}
	account, kind := e.account, err.step.Resource.Kind
	if kind == kindCRD && !e.crds.asAccount || errors.Is(err.err, errOwnRead) {
		account = nil // The supervisor used its own permissions.
	}
	return apiErrorRemedy(err.err, account, e.content.kinds.PermissionsCommand(kind))
}

// check checks the steps before the first of them is applied.
func (e *execution) check(ctx context.Context, steps []*operatorsv1alpha1.Step) *stepError {
	for _, s := range steps {
		if plansteps.IsApplied(s.Status) {
			continue
		}
		if err := e.checkKind(s); err != nil {
			if errors.Is(err, errUnsupported) {
				s.Status = operatorsv1alpha1.StepStatusUnsupportedResource
			}
			return &stepError{step: s, err: err}
		}
	}
	err := checkDefinitions(ctx, e.crds, steps)
	if err != nil && reasonOf(err.err) == api.ReasonDefinitionRefused && slices.ContainsFunc(steps, createsVersion) {
		err.effect = "no ClusterServiceVersion was created"
	}
	return err
}

// createsVersion reports whether a step creates a version and is not done yet.
func createsVersion(s *operatorsv1alpha1.Step) bool {
	return s.Resource.Kind == operatorsv1alpha1.ClusterServiceVersionKind && !plansteps.IsApplied(s.Status)
}

// checkDefinitions checks what the steps change in CustomResourceDefinitions.
func checkDefinitions(ctx context.Context, crds *crdApplier, steps []*operatorsv1alpha1.Step) *stepError {
	for _, s := range steps {
		if plansteps.IsApplied(s.Status) || s.Status == operatorsv1alpha1.StepStatusWaitingForAPI || s.Resource.Kind != kindCRD {
			continue
		}
		if err := crds.prepare(ctx, s); err != nil {
			return &stepError{step: s, err: err}
		}
	}
	return crds.checkConversions(ctx, steps)
}

// checkKind returns an error if a plan must not contain a step.
func (e *execution) checkKind(s *operatorsv1alpha1.Step) error {
	u, ref, err := plansteps.Manifest(s)
	if err != nil {
		return err //nolint:wrapcheck // names the step
	}
	gvk := schema.GroupVersionKind{Group: s.Resource.Group, Version: s.Resource.Version, Kind: s.Resource.Kind}
	if ref == nil {
		if err := plansteps.CompleteObject(u, s, e.namespace, e.content.kinds); err != nil {
			return err //nolint:wrapcheck // names the step
		}
		gvk = u.GroupVersionKind()
	}
	if gvk.Group == groupAPIExtensions && gvk.Kind == kindCRD && gvk.Version != "v1" {
		return &definitionVersionError{version: gvk.Version}
	}
	if _, allowed := e.content.kinds.ScopeOf(gvk.GroupKind()); allowed || e.mayCreateSubscription(u, s) {
		return nil
	}
	return e.refuseKind(gvk, s)
}

// mayCreateSubscription reports whether a step holds a Subscription that does not come from a bundle.
func (e *execution) mayCreateSubscription(u *unstructured.Unstructured, s *operatorsv1alpha1.Step) bool {
	if u == nil || u.GroupVersionKind().GroupKind() != kindOfSubscriptions() || s.Status == operatorsv1alpha1.StepStatusUnsupportedResource {
		return false
	}
	return e.byOthers || plansteps.IsGenerated(u, e.plan)
}

// refuseKind returns the error for a step of a kind that a plan must not contain. A known kind in a group
// that the cluster does not serve is a missing API.
func (e *execution) refuseKind(gvk schema.GroupVersionKind, s *operatorsv1alpha1.Step) error {
	served := e.objects.own.RESTMapper()
	if e.content.kinds.IsKnown(gvk.Kind) {
		if _, err := served.RESTMapping(gvk.GroupKind(), gvk.Version); apimeta.IsNoMatchError(err) {
			return err //nolint:wrapcheck // the message of a step is formed from its type
		}
	}
	remedy := "remove it from the plan"
	if s.Resolving != "" {
		remedy = fmt.Sprintf("ask the author of %s to remove it", s.Resolving)
	}
	if argument := plansteps.Argument(gvk, served); argument != "" {
		remedy += ", or ask an administrator to run the supervisor with " + argument
	}
	return &kindError{remedy: remedy}
}

// applyAll applies the steps in order.
func (e *execution) applyAll(ctx context.Context, steps []*operatorsv1alpha1.Step) *stepError {
	for i, s := range steps {
		if plansteps.IsApplied(s.Status) {
			continue
		}
		received := &warnings.Collector{}
		status, err := e.apply(received.In(ctx), s)
		if texts := received.Texts(); err == nil || len(texts) > 0 {
			e.warnings.record(ctx, i, s, texts)
		}
		if err != nil {
			if errors.Is(err, errOwnerDeleted) {
				resetSteps(steps, s.Resolving)
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

// resetSteps resets every step of a version to be applied again: the objects of a deleted version
// are deleted too. Steps with unsupported objects stay as they are.
func resetSteps(steps []*operatorsv1alpha1.Step, csv string) {
	for _, s := range steps {
		if s.Resolving == csv && s.Status != operatorsv1alpha1.StepStatusUnsupportedResource {
			s.Status = operatorsv1alpha1.StepStatusUnknown
		}
	}
}

// apply applies one step and returns its new status.
func (e *execution) apply(ctx context.Context, s *operatorsv1alpha1.Step) (operatorsv1alpha1.StepStatus, error) {
	if s.Resource.Kind == kindCRD {
		return e.crds.apply(ctx, s)
	}
	u, err := e.content.manifest(ctx, s)
	if err != nil {
		return "", err
	}
	switch u.GetKind() {
	case operatorsv1alpha1.ClusterServiceVersionKind:
		return e.createVersion(ctx, u)
	case operatorsv1alpha1.SubscriptionKind:
		return e.createSubscription(ctx, u)
	}
	if s.Resource.Kind == kindSecret {
		return e.checkPullSecret(ctx, u)
	}
	scope, _ := e.content.kinds.ScopeOf(u.GroupVersionKind().GroupKind())
	owner, references, err := e.owners.of(ctx, u, s.Resolving)
	if err != nil {
		return "", err
	}
	unreferenced := scope == plansteps.ClusterScoped && s.Resolving != ""
	if unreferenced {
		if err := e.objects.addFinalizer(ctx, owner); err != nil {
			return "", err
		}
	}
	setOwners(u, scope, references)
	setComponent(u, owner.pkg, e.namespace)
	result, err := e.objects.apply(ctx, u, owner)
	if err == nil && unreferenced {
		e.clusterScoped = append(e.clusterScoped, clusterScopedStep{s, u.GroupVersionKind()})
	}
	return statusOf(result), err
}

// setOwners sets the owners of a namespaced object. Other objects cannot have an owner with a namespace.
func setOwners(u *unstructured.Unstructured, scope plansteps.Scope, owners []metav1.OwnerReference) {
	if scope == plansteps.Namespaced {
		u.SetOwnerReferences(owners)
	}
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
	labels[plansteps.ComponentLabel(pkg, namespace)] = ""
	u.SetLabels(labels)
}

// createVersion creates a ClusterServiceVersion. It never overwrites an existing one, which may have
// changed since.
func (e *execution) createVersion(ctx context.Context, u *unstructured.Unstructured) (operatorsv1alpha1.StepStatus, error) {
	installed, err := e.observer.versions(ctx)
	if err != nil {
		return "", err
	}
	if err := checkOwnedCRDs(u, e.namespace, installed); err != nil {
		return "", err
	}
	created, absent, err := apply.CreateIfAbsent(ctx, e.objects.writer, u)
	if err != nil {
		return "", err
	}
	if absent {
		e.owners.byName[u.GetName()] = ownerOf(created)
		e.crds.rereadRecorded(types.NamespacedName{Namespace: e.namespace, Name: u.GetName()})
		return operatorsv1alpha1.StepStatusCreated, nil
	}
	// A version that is being deleted, or a copy, does not satisfy the next steps.
	_, err = e.owners.get(ctx, u.GetName())
	return operatorsv1alpha1.StepStatusPresent, err
}

// createSubscription creates the Subscription of a package, unless the namespace already has one.
func (e *execution) createSubscription(ctx context.Context, u *unstructured.Unstructured) (operatorsv1alpha1.StepStatus, error) {
	pkg, _, err := unstructured.NestedString(u.Object, "spec", "name")
	if err != nil {
		return "", fmt.Errorf("reading spec.name of Subscription %s: %w", u.GetName(), err)
	}
	subscribed, err := e.observer.isSubscribed(ctx, pkg)
	if err != nil {
		return "", err
	}
	if subscribed {
		return operatorsv1alpha1.StepStatusPresent, nil
	}
	annotate(u, api.AnnotationGeneratedBy, e.plan)
	_, absent, err := apply.CreateIfAbsent(ctx, e.objects.writer, u)
	switch {
	case err != nil:
		return "", err
	case absent:
		return operatorsv1alpha1.StepStatusCreated, nil
	default:
		return operatorsv1alpha1.StepStatusPresent, nil
	}
}

// checkPullSecret checks a step of a plan of another system: a copy of the catalog's credentials. It
// accepts an existing Secret and never creates one. Users who may read the Secrets of a namespace
// need not have access to those of its catalogs.
func (e *execution) checkPullSecret(ctx context.Context, u *unstructured.Unstructured) (operatorsv1alpha1.StepStatus, error) {
	key := client.ObjectKey{Namespace: e.namespace, Name: u.GetName()}
	live, err := e.observer.get(ctx, u.GroupVersionKind(), key)
	if err != nil {
		return "", err
	}
	if live == nil {
		return "", fmt.Errorf(olmtext.SecretMissing+"; create Secret %s with the credentials for the operator's images", key.Name, errSecretMissing, key)
	}
	return operatorsv1alpha1.StepStatusPresent, nil
}

// awaitAPIs waits up to maxWaitForAPI for the kinds that this pass has created.
func (e *execution) awaitAPIs(ctx context.Context, steps []*operatorsv1alpha1.Step) *stepError {
	ctx, cancel := context.WithTimeout(ctx, maxWaitForAPI)
	defer cancel()
	for _, s := range steps {
		for s.Status == operatorsv1alpha1.StepStatusWaitingForAPI {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(pollForAPI):
			}
			status, err := e.crds.apply(ctx, s)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return &stepError{step: s, err: err}
			}
			s.Status = status
		}
	}
	return nil
}

// confirmOwners checks that the versions still exist for which this pass applied cluster-scoped
// objects. Garbage collection does not reach such objects. Only the finalizer of their owner
// deletes them, and it may have searched already. Objects of a deleted version are therefore
// deleted here.
func (e *execution) confirmOwners(ctx context.Context, steps []*operatorsv1alpha1.Step) *stepError {
	checked := map[string]error{}
	var failure *stepError
	for _, c := range e.clusterScoped {
		s := c.step
		err, known := checked[s.Resolving]
		if !known {
			err = e.owners.confirm(ctx, s.Resolving)
			checked[s.Resolving] = err
		}
		if err == nil {
			continue
		}
		// After any error, the owner of the object is unknown.
		s.Status = operatorsv1alpha1.StepStatusUnknown
		if errors.Is(err, errOwnerDeleted) {
			if left := e.objects.deleteOwned(ctx, s, c.kind); left != nil {
				err = fmt.Errorf("%w; %w", err, left)
			}
			resetSteps(steps, s.Resolving)
		}
		if failure == nil {
			failure = &stepError{step: s, err: err}
		}
	}
	return failure
}

// dryRun returns the error that would end a pass at a step or before it. It checks all remaining
// steps, as a pass does. Of the steps before that one it applies only the versions, which own the
// objects that follow: without a write, a step may lack what an earlier step creates. All other
// earlier steps count as successful. The clients of the execution must not write.
func (e *execution) dryRun(ctx context.Context, steps []*operatorsv1alpha1.Step, until *operatorsv1alpha1.Step) *stepError {
	if err := e.check(ctx, steps); err != nil {
		return err
	}
	for _, s := range steps {
		if !plansteps.IsApplied(s.Status) && (s == until || s.Resource.Kind == operatorsv1alpha1.ClusterServiceVersionKind) {
			// An object that has to be recreated still exists.
			if _, err := e.apply(ctx, s); err != nil && !errors.Is(err, errChanged) {
				return &stepError{step: s, err: err}
			}
		}
		if s == until {
			break
		}
	}
	return nil
}

// dryRunTimeout bounds how long the status of a failed plan waits for the warnings of steps that
// were not applied.
const dryRunTimeout = 5 * time.Second

// recordRemainingWarnings applies the remaining steps of a failed plan as a dry run, to record their
// warnings. It ends after dryRunTimeout.
func (e *execution) recordRemainingWarnings(ctx context.Context, steps []*operatorsv1alpha1.Step) {
	ctx, cancel := context.WithTimeout(ctx, dryRunTimeout)
	defer cancel()
	for i, s := range steps {
		if ctx.Err() != nil {
			return
		}
		if plansteps.IsApplied(s.Status) || s.Resource.Kind == kindSecret || e.checkKind(s) != nil {
			continue
		}
		u, err := e.content.manifest(ctx, s)
		if err != nil {
			continue
		}
		writer := e.objects.writer
		if s.Resource.Kind == kindCRD {
			writer = e.crds.writer
		}
		received := &warnings.Collector{}
		// A refusal carries the warnings, too.
		if _, _, err := apply.CreateIfAbsent(received.In(ctx), client.NewDryRunClient(writer), u); err != nil {
			log.FromContext(ctx).V(1).Info("Step would be refused", "kind", s.Resource.Kind, "name", s.Resource.Name, "error", err.Error())
		}
		e.warnings.record(ctx, i, s, received.Texts())
	}
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
