package operator

import (
	"context"
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
)

// patchLabels sets or removes labels of an object. It uses a merge patch with single keys instead of
// server-side apply. An apply removes only labels of the same manager. The patch leaves the labels
// of other managers unchanged.
func patchLabels(ctx context.Context, c client.Client, k kind, o client.Object, labels map[string]*string) error {
	// The response is also metadata only, because CustomResourceDefinitions are large.
	target := k.metadata()
	target.SetNamespace(o.GetNamespace())
	target.SetName(o.GetName())
	err := apply.Patch(ctx, c, target, apply.MergePatch{"metadata": map[string]any{"labels": labels}})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("changing labels of %s %s: %w", k.gvk.Kind, client.ObjectKeyFromObject(o), err)
	}
	return nil
}

// labelChanges returns the same value for each key; nil means removal.
func labelChanges(keys []string, value *string) map[string]*string {
	labels := map[string]*string{}
	for _, key := range keys {
		labels[key] = value
	}
	return labels
}

// createOperator creates an Operator.
func (r *reconciler) createOperator(ctx context.Context, name string) (*operatorsv1.Operator, error) {
	o := &operatorsv1.Operator{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{api.LabelManaged: "true"}}}
	if err := apply.Create(ctx, r.client, o); err != nil {
		return nil, fmt.Errorf("creating Operator %s: %w", name, err)
	}
	return o, nil
}

// updateStatus writes the status. It uses an optimistic lock, because a merge patch replaces the list of
// components as a whole.
func (r *reconciler) updateStatus(ctx context.Context, have *operatorsv1.Operator, want operatorsv1.OperatorStatus) error {
	changed := have.DeepCopy()
	changed.Status = want
	if err := apply.PatchStatus(ctx, r.client, changed, apply.MergeFromLocked(have)); err != nil {
		return fmt.Errorf("writing the status of Operator %s: %w", have.Name, err)
	}
	return nil
}

// deleteOperator deletes an Operator if it still has the UID and the resourceVersion of have.
func (r *reconciler) deleteOperator(ctx context.Context, have *operatorsv1.Operator) error {
	err := apply.DeleteIf(ctx, r.client, have, apply.SameVersion(have))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Operator %s, which has no components: %w", have.Name, err)
	}
	return nil
}
