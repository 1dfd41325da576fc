package installplan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/crdguard"
	"github.com/chandlery/chandlery/supervisor/plan"
)

const (
	kindCRD            = "CustomResourceDefinition"
	kindSecret         = "Secret"
	groupAPIExtensions = "apiextensions.k8s.io"
)

// The API server serves a new kind some ten milliseconds after its definition was created, or five
// seconds where there are several API servers. A pass waits only for the shorter time.
const (
	patienceForAPI = 500 * time.Millisecond
	pollForAPI     = 20 * time.Millisecond
)

// definition is the state of the CustomResourceDefinition of a step.
type definition struct {
	// wanted is applied over live, or created if live is nil.
	wanted, live *unstructured.Unstructured
	// keep reports whether live does not change, as it equals wanted and has another owner.
	keep bool
	// joins are the annotations and labels of the version that live lacks. It is set where live
	// equals wanted in all other respects.
	joins *apply.Keys
}

// prepare reads the CustomResourceDefinition of a step from its bundle and from the cluster, and
// checks that the former may replace the latter.
func (e *execution) prepare(ctx context.Context, s *operatorsv1alpha1.Step) error {
	u, err := e.content.manifest(ctx, s)
	if err != nil {
		return err
	}
	d := &definition{wanted: u.DeepCopy()}
	converted, err := e.convertedBy(ctx, u, s)
	if err != nil {
		return err
	}
	if err := e.labelComponent(ctx, d.wanted, s.Resolving); err != nil {
		return err
	}
	if d.live, err = e.read(ctx, u.GroupVersionKind(), client.ObjectKeyFromObject(u)); err != nil {
		return err
	}
	decision, err := guard(ctx, e, s, d, converted)
	if err != nil {
		return err
	}
	alongside := types.NamespacedName{Namespace: e.namespace, Name: s.Resolving}
	switch {
	case decision == crdguard.Keep:
		d.keep = true
	case d.live == nil:
		prepareNew(d.wanted, alongside, converted)
	default:
		err = e.prepareChange(ctx, d, u, s, converted)
	}
	if err != nil {
		return err
	}
	e.definitions[s] = d
	return nil
}

// prepareNew completes a definition that is not in the cluster.
func prepareNew(wanted *unstructured.Unstructured, alongside types.NamespacedName, converted bool) {
	setAlongside(wanted, []types.NamespacedName{alongside})
	if converted {
		unstructured.RemoveNestedField(wanted.Object, "spec", "conversion")
		holdServed(wanted, nil, alongside)
	}
}

// prepareChange checks that the definition of a bundle may replace the one in the cluster, and
// completes it.
func (e *execution) prepareChange(ctx context.Context, d *definition, u *unstructured.Unstructured, s *operatorsv1alpha1.Step, converted bool) error {
	alongside := types.NamespacedName{Namespace: e.namespace, Name: s.Resolving}
	keepComponents(d.wanted, d.live)
	setDefaults(d.wanted)
	kept, err := e.keepNewer(ctx, d, s)
	if err != nil {
		return err
	}
	if kept {
		return e.joinAlongside(ctx, d, alongside)
	}
	if err := e.checker.check(ctx, d.live, u); err != nil {
		return err
	}
	if s.Resolving == e.reverts {
		if err := e.revert(ctx, d.live, u); err != nil {
			return err
		}
	}
	keepConversion(d.wanted, d.live, converted)
	if converted {
		holdStorage(d.wanted, d.live, alongside)
		holdConversion(d.wanted, d.live, alongside)
		holdServed(d.wanted, d.live, alongside)
	}
	if err := e.prepareJoin(ctx, d, alongside); d.joins != nil || err != nil {
		return err
	}
	return e.joinAlongside(ctx, d, alongside)
}

// prepareJoin sets joins for a definition that otherwise equals the one of its bundle. Many
// versions of one operator then write keys of their own, instead of replacing the whole in turns.
// It sets nothing where something else differs. It sets nothing for an account either, which may
// lack the right to patch.
func (e *execution) prepareJoin(ctx context.Context, d *definition, alongside types.NamespacedName) error {
	if e.crds.asAccount {
		return nil
	}
	same := d.wanted.DeepCopy()
	setAlongside(same, plan.Alongside(d.live))
	labels := same.GetLabels()
	missing := without(plan.ComponentLabels(labels), d.live.GetLabels())
	same.SetLabels(without(labels, missing))
	differs, err := apply.Differs(same, d.live)
	if err != nil || differs {
		return err //nolint:wrapcheck // names the object
	}
	d.joins = &apply.Keys{Annotations: map[string]string{}, Labels: missing}
	if key := alongsideKey(alongside); d.live.GetAnnotations()[key] != alongside.String() {
		d.joins.Annotations[key] = alongside.String()
	}
	_, d.joins.Remove, err = e.alongside(ctx, d.live)
	return err
}

// without returns the labels whose keys others lack. Both are maps, and not objects: an object copies
// all of its labels each time that it is asked for them, and a definition has one for each namespace.
func without(labels, others map[string]string) map[string]string {
	left := maps.Clone(labels)
	maps.DeleteFunc(left, func(key, _ string) bool { _, has := others[key]; return has })
	return left
}

// convertedBy reports whether the version of a step declares a conversion webhook for its
// CustomResourceDefinition. The controller of versions sets up the conversion when the webhook
// runs.
func (e *execution) convertedBy(ctx context.Context, crd *unstructured.Unstructured, s *operatorsv1alpha1.Step) (bool, error) {
	csv, err := e.content.version(ctx, s.Resolving)
	if err != nil {
		return false, fmt.Errorf("reading ClusterServiceVersion %s for the webhook that converts: %w", s.Resolving, err)
	}
	return csv != nil && declaresConversion(csv, crd.GetName()), nil
}

// joinAlongside records a version on the wanted definition, beside the existing versions that live
// names.
func (e *execution) joinAlongside(ctx context.Context, d *definition, version types.NamespacedName) error {
	versions, _, err := e.alongside(ctx, d.live)
	if err != nil {
		return err
	}
	setAlongside(d.wanted, append(versions, version))
	return nil
}

// applyCRD applies a CustomResourceDefinition and returns the status of its step: done once the API
// server serves it. For a step that already waits for its API, it only reads the definition.
func (e *execution) applyCRD(ctx context.Context, s *operatorsv1alpha1.Step) (operatorsv1alpha1.StepStatus, error) {
	if s.Status == operatorsv1alpha1.StepStatusWaitingForAPI {
		live, err := e.readCRD(ctx, s)
		if err != nil || live != nil {
			return crdStatus(live, operatorsv1alpha1.StepStatusCreated, err)
		}
	}
	defer e.crds.turns.take(s.Resource.Name)()
	if d := e.definitions[s]; d != nil && e.outdated(s, d) {
		delete(e.definitions, s)
	}
	for range attempts {
		made, result, err := e.applyOnce(ctx, s)
		if !errors.Is(err, errChanged) {
			return crdStatus(made, statusOf(result), err)
		}
	}
	return "", errChanged
}

// outdated reports whether a definition has to be read again when its turn begins. A key that is
// added needs no fresh read. Stale records are removed from the newest object only: an older read
// would conflict with the writes of other plans. The records would then accumulate, and each plan
// would read each of their versions.
func (e *execution) outdated(s *operatorsv1alpha1.Step, d *definition) bool {
	if d.joins != nil {
		return len(d.joins.Remove) > 0
	}
	return e.crds.turns.changed(s.Resource.Name, d.live)
}

// applyOnce writes the definition of a step. It reads the definition first unless the plan has just
// read it. The error wraps errChanged where the definition has changed since it was read.
func (e *execution) applyOnce(ctx context.Context, s *operatorsv1alpha1.Step) (*unstructured.Unstructured, apply.Result, error) {
	if e.definitions[s] == nil {
		if err := e.prepare(ctx, s); err != nil {
			return nil, "", err
		}
	}
	d := e.definitions[s]
	delete(e.definitions, s)
	made, result, err := e.define(ctx, d)
	if err == nil && (result == apply.Created || result == apply.Updated) && d.joins == nil {
		e.crds.turns.wrote(made)
	}
	return made, result, err
}

// define writes a definition, unless it is kept. The error wraps errChanged where the live object
// is not the one that was checked.
func (e *execution) define(ctx context.Context, d *definition) (*unstructured.Unstructured, apply.Result, error) {
	if d.keep {
		return d.live, apply.Unchanged, nil
	}
	if d.joins != nil {
		result, err := e.join(ctx, d)
		return d.live, result, err
	}
	if d.live == nil {
		made, absent, err := apply.IfAbsent(ctx, crdWriter(e), d.wanted)
		if err == nil && !absent {
			err = errChanged
		}
		return made, apply.Created, err
	}
	made, result, err := apply.Over(ctx, crdWriter(e), d.wanted, d.live)
	if apierrors.IsConflict(err) {
		err = fmt.Errorf("%w: %w", errChanged, err)
	}
	return made, result, err
}

// setDefaults sets the fields that the API server would set in a definition that lacks them. Those
// fields count as set by the plan that created the definition. A write without them would remove
// them, and the API server would set them again.
func setDefaults(crd *unstructured.Unstructured) {
	spec, is := crd.Object["spec"].(map[string]any)
	if !is {
		return
	}
	if _, has := spec["conversion"]; !has {
		spec["conversion"] = map[string]any{"strategy": string(apiextensionsv1.NoneConverter)}
	}
	names, is := spec["names"].(map[string]any)
	kind, _ := names["kind"].(string)
	if !is || kind == "" {
		return
	}
	for field, value := range map[string]string{"singular": strings.ToLower(kind), "listKind": kind + "List"} {
		if _, has := names[field]; !has {
			names[field] = value
		}
	}
}

// keepComponents adds the component labels of the live definition to the wanted one.
func keepComponents(wanted, live *unstructured.Unstructured) {
	labels := plan.ComponentLabels(live.GetLabels())
	maps.Copy(labels, wanted.GetLabels())
	wanted.SetLabels(labels)
}

// join adds the keys of the version to a definition that otherwise equals the wanted one.
func (e *execution) join(ctx context.Context, d *definition) (apply.Result, error) {
	if len(d.joins.Annotations)+len(d.joins.Labels) == 0 {
		return apply.Unchanged, nil
	}
	keys := *d.joins
	err := apply.Join(ctx, crdWriter(e), d.live, keys)
	if apierrors.IsConflict(err) && len(keys.Remove) > 0 {
		// The next plan removes the stale keys.
		keys.Remove = nil
		err = apply.Join(ctx, crdWriter(e), d.live, keys)
	}
	switch {
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("CustomResourceDefinition %s was deleted: %w", d.live.GetName(), errChanged)
	case apierrors.IsConflict(err):
		return "", fmt.Errorf("%w: %w", errChanged, err)
	case err != nil:
		return "", err
	}
	return apply.Updated, nil
}

func (e *execution) readCRD(ctx context.Context, s *operatorsv1alpha1.Step) (*unstructured.Unstructured, error) {
	return e.read(ctx, kindOfCRDs(), client.ObjectKey{Name: s.Resource.Name})
}

// awaitAPIs waits up to patienceForAPI for the kinds that this pass has created.
func (e *execution) awaitAPIs(ctx context.Context, steps []*operatorsv1alpha1.Step) *stepError {
	ctx, cancel := context.WithTimeout(ctx, patienceForAPI)
	defer cancel()
	for _, s := range steps {
		for s.Status == operatorsv1alpha1.StepStatusWaitingForAPI {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(pollForAPI):
			}
			status, err := e.applyCRD(ctx, s)
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

// crdStatus returns the status of the step of a CustomResourceDefinition: done once the API server
// serves it.
func crdStatus(live *unstructured.Unstructured, done operatorsv1alpha1.StepStatus, err error) (operatorsv1alpha1.StepStatus, error) {
	if err != nil {
		return "", err
	}
	if message, refused := namesRefused(live); refused {
		return "", fmt.Errorf("%w: %s; remove the CustomResourceDefinition that has them, or ask for a bundle whose CustomResourceDefinition %s has other names",
			errNamesRefused, message, live.GetName())
	}
	if !established(live) {
		return operatorsv1alpha1.StepStatusWaitingForAPI, nil
	}
	return done, nil
}

// namesRefused reports whether another CustomResourceDefinition has the names of this one, and
// returns the message of the API server.
func namesRefused(crd *unstructured.Unstructured) (message string, refused bool) {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if ok && condition["type"] == "NamesAccepted" && condition["status"] == string(metav1.ConditionFalse) {
			message, _ = condition["message"].(string)
			return message, true
		}
	}
	return "", false
}

// established reports whether the API server serves a CustomResourceDefinition.
func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	met := 0
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if !ok || condition["status"] != string(metav1.ConditionTrue) {
			continue
		}
		if condition["type"] == "Established" || condition["type"] == "NamesAccepted" {
			met++
		}
	}
	return met == 2
}
