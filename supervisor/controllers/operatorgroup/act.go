package operatorgroup

import (
	"context"
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
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
	ns := namespaceMetadata()
	ns.Name = name
	if err := apply.Patch(ctx, c, ns, apply.MergePatch{"metadata": map[string]any{"labels": labels}}); err != nil {
		return fmt.Errorf("labelling namespace %s: %w", name, err)
	}
	return nil
}

// writeStatus writes the group's status. It uses an optimistic lock, because a merge patch replaces
// lists as a whole.
func writeStatus(ctx context.Context, c client.Client, group *operatorsv1.OperatorGroup, want operatorsv1.OperatorGroupStatus) error {
	changed := group.DeepCopy()
	changed.Status = want
	if err := apply.PatchStatus(ctx, c, changed, apply.MergeFromLocked(group)); err != nil {
		return fmt.Errorf("writing status of OperatorGroup %s/%s: %w", group.Namespace, group.Name, err)
	}
	return nil
}
