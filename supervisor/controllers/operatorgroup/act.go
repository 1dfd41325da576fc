package operatorgroup

import (
	"context"
	"encoding/json"
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

// writeLabels sets and removes group labels on a namespace. It uses a merge patch with single keys
// instead of server-side apply. An apply removes only labels of the same manager, but labels of
// another lifecycle manager must go too. The patch leaves all other labels unchanged.
func writeLabels(ctx context.Context, c client.Client, name string, changes map[string]bool) error {
	labels := map[string]*string{}
	for key, set := range changes {
		labels[key] = nil
		if set {
			labels[key] = new(string)
		}
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		return fmt.Errorf("encoding labels of namespace %s: %w", name, err)
	}
	ns := namespaceMetadata()
	ns.Name = name
	if err := c.Patch(ctx, ns, client.RawPatch(types.MergePatchType, body), client.FieldOwner(api.FieldManager)); err != nil {
		return fmt.Errorf("labelling namespace %s: %w", name, err)
	}
	return nil
}

// writeStatus writes the group's status. It uses an optimistic lock, because a merge patch replaces
// lists as a whole.
func writeStatus(ctx context.Context, c client.Client, group *operatorsv1.OperatorGroup, want operatorsv1.OperatorGroupStatus) error {
	changed := group.DeepCopy()
	changed.Status = want
	patch := client.MergeFromWithOptions(group, client.MergeFromWithOptimisticLock{})
	if err := c.Status().Patch(ctx, changed, patch, client.FieldOwner(api.FieldManager)); err != nil {
		return fmt.Errorf("writing status of OperatorGroup %s/%s: %w", group.Namespace, group.Name, err)
	}
	return nil
}
