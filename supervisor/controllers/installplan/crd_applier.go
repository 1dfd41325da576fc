package installplan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/crd/upgradesafety"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// crdApplier creates and updates the CustomResourceDefinitions of a plan.
type crdApplier struct {
	observer *observer
	checker  *crdChecker
	// writer has the permissions of the supervisor, or those of the OperatorGroup's service account if
	// asAccount is set.
	writer    client.Client
	asAccount bool
	// unbounded reports whether the OperatorGroup targets all namespaces and names no service
	// account.
	unbounded bool
	// locks orders the writes of all plans of this process. equal holds the definitions that they found equal to those
	// of their bundles.
	locks *crdLocks
	equal *equalCRDs
	// reverts names the version whose definitions replace newer ones; empty for none.
	reverts string
	// prepared holds the changes that are checked and not written yet.
	prepared map[*operatorsv1alpha1.Step]*crdChange
}

// prepare reads the CustomResourceDefinition of a step from its bundle and from the cluster, and
// checks that the former may replace the latter.
func (a *crdApplier) prepare(ctx context.Context, s *operatorsv1alpha1.Step) error {
	ofBundle, err := a.observer.bundleCRD(ctx, s)
	if err != nil {
		return err
	}
	change, err := a.addition(ctx, ofBundle)
	if err != nil {
		return err
	}
	if change == nil {
		if change, err = a.compare(ctx, ofBundle); err != nil {
			return err
		}
	}
	a.prepared[s] = change
	return nil
}

// addition returns the change that adds the keys of a version to a definition. It returns nil unless the definition
// is known to equal that of the bundle. It then reads only the metadata of the definition.
func (a *crdApplier) addition(ctx context.Context, state crdState) (*crdChange, error) {
	known := a.equal.get(state.name)
	if known == nil || !a.addsOnly(&state) || !known.isOf(state.bundle) {
		return nil, nil //nolint:nilnil // the doc comment says what nil means
	}
	live, err := a.observer.crdMetadata(ctx, state.name)
	if err != nil {
		return nil, err
	}
	if live != nil && known.describes(&live.ObjectMeta) {
		state.live = known.at(live.ResourceVersion)
		if state.recorded, err = a.observer.recorded(ctx, live); err != nil {
			return nil, err
		}
		if decision, err := state.decide(a.unbounded); err == nil && decision == upgradesafety.Write {
			return &crdChange{live: state.live, missing: state.missingFrom(live, state.wanted()), recorded: state.recorded}, nil
		}
	}
	a.equal.forget(state.name, known)
	return nil, nil //nolint:nilnil // the doc comment says what nil means
}

// compare reads the whole definition, and returns what to write of it.
func (a *crdApplier) compare(ctx context.Context, ofBundle crdState) (*crdChange, error) {
	state, err := a.observer.withLive(ctx, ofBundle)
	if err != nil {
		return nil, err
	}
	change, err := a.change(ctx, state)
	if err != nil {
		return nil, err
	}
	change.recorded = state.recorded
	if change.missing != nil && a.addsOnly(state) {
		err = a.equal.record(state)
	}
	return change, err
}

// addsOnly reports whether a plan only adds the keys of the version to a definition that equals the one of its
// bundle. An account may lack permission to patch.
func (a *crdApplier) addsOnly(state *crdState) bool {
	return !a.asAccount && state.version.Name != a.reverts && !state.converted()
}

// change returns what to write of a definition. It returns an error if the definition must not be
// written.
func (a *crdApplier) change(ctx context.Context, state *crdState) (*crdChange, error) {
	decision, err := state.decide(a.unbounded)
	switch {
	case err != nil:
		return nil, err
	case decision == upgradesafety.Keep:
		return &crdChange{live: state.live}, nil
	case state.live == nil:
		return state.creation(), nil
	}
	newer, err := state.newer()
	if err != nil {
		return nil, err
	}
	if newer != nil {
		change, err := state.keepNewer(newer)
		if err == nil {
			log.FromContext(ctx).Info("Keeping a definition as a newer version of the operator needs it", "crd", state.name,
				"newer", newer.Namespace+"/"+newer.Name, "version", state.version.Name)
		}
		return change, err
	}
	if err := a.checker.check(ctx, state.live, state.bundle); err != nil {
		return nil, err
	}
	if state.version.Name == a.reverts {
		if err := a.checker.checkRevert(ctx, state); err != nil {
			return nil, err
		}
	}
	if _, stale := state.existingVersions(); len(stale) > 0 {
		// The checks may take minutes, in which another plan may begin to install a missing version.
		if state.recorded, err = a.observer.recorded(ctx, state.live); err != nil {
			return nil, err
		}
	}
	// An account may lack permission to patch.
	return state.update(!a.asAccount)
}

// checkConversions checks the conversion webhooks of the versions that are not created yet.
func (a *crdApplier) checkConversions(ctx context.Context, steps []*operatorsv1alpha1.Step) *stepError {
	for _, s := range steps {
		if plansteps.IsApplied(s.Status) || s.Resource.Kind != operatorsv1alpha1.ClusterServiceVersionKind {
			continue
		}
		if err := a.checkConversionsOf(ctx, steps, s); err != nil {
			return &stepError{step: s, err: err}
		}
	}
	return nil
}

// checkConversionsOf checks the definitions for which a version declares conversion webhooks and that
// its bundle lacks. The controller of versions changes those definitions too.
func (a *crdApplier) checkConversionsOf(ctx context.Context, steps []*operatorsv1alpha1.Step, s *operatorsv1alpha1.Step) error {
	csv, err := a.observer.content.version(ctx, s.Resource.Name)
	if err != nil || csv == nil {
		return err
	}
	for _, name := range conversionCRDs(csv) {
		inBundle := slices.ContainsFunc(steps, func(other *operatorsv1alpha1.Step) bool {
			return other.Resource.Kind == kindCRD && other.Resource.Name == name && other.Resolving == s.Resolving
		})
		if inBundle {
			continue
		}
		version := types.NamespacedName{Namespace: a.observer.namespace, Name: s.Resource.Name}
		state, err := a.observer.withLive(ctx, crdState{name: name, version: version, csv: csv})
		if err != nil {
			return err
		}
		if _, err := state.decide(a.unbounded); err != nil {
			return err
		}
	}
	return nil
}

// apply applies a CustomResourceDefinition and returns the status of its step: done once the API
// server serves it. For a step that already waits for its API, it only reads the definition.
func (a *crdApplier) apply(ctx context.Context, s *operatorsv1alpha1.Step) (operatorsv1alpha1.StepStatus, error) {
	if s.Status == operatorsv1alpha1.StepStatusWaitingForAPI {
		live, err := a.observer.definition(ctx, s.Resource.Name)
		if err != nil || live != nil {
			return crdStatus(live, operatorsv1alpha1.StepStatusCreated, err)
		}
	}
	defer a.locks.lock(s.Resource.Name)()
	if c := a.prepared[s]; c != nil && a.isStale(s, c) {
		delete(a.prepared, s)
	}
	for range maxAttempts {
		written, result, err := a.applyOnce(ctx, s)
		if !errors.Is(err, errChanged) {
			return crdStatus(written, statusOf(result), err)
		}
	}
	return "", errChanged
}

// isStale reports whether a definition has to be read again after its lock is taken. A key that is
// added needs no fresh read. Stale records are removed from the newest object only: an older read
// would conflict with the writes of other plans. The records would then accumulate, and each plan
// would read each of their versions.
func (a *crdApplier) isStale(s *operatorsv1alpha1.Step, c *crdChange) bool {
	if c.missing != nil {
		return len(c.missing.Remove) > 0
	}
	return a.locks.changed(s.Resource.Name, c.live)
}

// applyOnce writes the definition of a step. It reads the definition first unless the plan has just
// read it. The error wraps errChanged where the definition has changed since it was read.
func (a *crdApplier) applyOnce(ctx context.Context, s *operatorsv1alpha1.Step) (*unstructured.Unstructured, apply.Result, error) {
	if a.prepared[s] == nil {
		if err := a.prepare(ctx, s); err != nil {
			return nil, "", err
		}
	}
	c := a.prepared[s]
	delete(a.prepared, s)
	written, result, err := a.write(ctx, c)
	if err == nil && (result == apply.Created || result == apply.Updated) && c.missing == nil {
		a.locks.recordWrite(written)
	}
	return written, result, err
}

// write writes a change. The error wraps errChanged where the live object is not the one that was
// checked.
func (a *crdApplier) write(ctx context.Context, c *crdChange) (*unstructured.Unstructured, apply.Result, error) {
	if c.missing != nil {
		result, err := a.addMetadata(ctx, c)
		return c.live, result, err
	}
	if c.wanted == nil {
		return c.live, apply.Unchanged, nil
	}
	if c.live == nil {
		created, absent, err := apply.CreateIfAbsent(ctx, a.writer, c.wanted)
		if err == nil && !absent {
			err = errChanged
		}
		return created, apply.Created, err
	}
	updated, result, err := apply.Update(ctx, a.writer, c.wanted, c.live)
	switch {
	case apierrors.IsConflict(err):
		err = fmt.Errorf("%w: %w", errChanged, err)
	case err != nil:
		if answer, is := errors.AsType[*apierrors.StatusError](err); is {
			err = answer
		}
		err = fmt.Errorf(olmtext.CRDUpdateRefused, c.live.GetName(), err)
	}
	return updated, result, err
}

// addMetadata adds the keys of the version to a definition that otherwise equals the wanted one.
func (a *crdApplier) addMetadata(ctx context.Context, c *crdChange) (apply.Result, error) {
	if len(c.missing.Annotations)+len(c.missing.Labels) == 0 {
		return apply.Unchanged, nil
	}
	keys := *c.missing
	err := apply.PatchMetadata(ctx, a.writer, c.live, keys)
	if apierrors.IsConflict(err) && len(keys.Remove) > 0 {
		// The next plan removes the stale keys.
		keys.Remove = nil
		err = apply.PatchMetadata(ctx, a.writer, c.live, keys)
	}
	switch {
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("CustomResourceDefinition %s was deleted: %w", c.live.GetName(), errChanged)
	case apierrors.IsConflict(err):
		return "", fmt.Errorf("%w: %w", errChanged, err)
	case err != nil:
		return "", err
	}
	return apply.Updated, nil
}

// rereadRecorded makes the pass read the definitions again that recorded a version before the pass
// created it. Such a record is of a deleted version of that name, whose clean-up may have removed it
// since.
func (a *crdApplier) rereadRecorded(created types.NamespacedName) {
	maps.DeleteFunc(a.prepared, func(_ *operatorsv1alpha1.Step, c *crdChange) bool {
		return slices.ContainsFunc(c.recorded, func(r recordedVersion) bool { return r.NamespacedName == created })
	})
}

// crdStatus returns the status of the step of a CustomResourceDefinition: done once the API server
// serves it.
func crdStatus(live *unstructured.Unstructured, done operatorsv1alpha1.StepStatus, err error) (operatorsv1alpha1.StepStatus, error) {
	if err != nil {
		return "", err
	}
	if status, message := conditionOf(live, apiextensionsv1.NamesAccepted); status == string(metav1.ConditionFalse) {
		return "", fmt.Errorf("%w: %s; remove the CustomResourceDefinition that has them, or ask for a bundle whose CustomResourceDefinition %s has other names",
			errNamesRefused, message, live.GetName())
	}
	if !established(live) {
		return operatorsv1alpha1.StepStatusWaitingForAPI, nil
	}
	return done, nil
}

// conditionOf returns the status and the message of a condition of a CustomResourceDefinition; empty
// when it has none of the type.
func conditionOf(crd *unstructured.Unstructured, kind apiextensionsv1.CustomResourceDefinitionConditionType) (status, message string) {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == string(kind) {
			status, _ = condition["status"].(string)
			message, _ = condition["message"].(string)
			return status, message
		}
	}
	return "", ""
}

// established reports whether the API server serves a CustomResourceDefinition.
func established(crd *unstructured.Unstructured) bool {
	served, _ := conditionOf(crd, apiextensionsv1.Established)
	accepted, _ := conditionOf(crd, apiextensionsv1.NamesAccepted)
	return served == string(metav1.ConditionTrue) && accepted == string(metav1.ConditionTrue)
}
