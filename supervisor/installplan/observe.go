package installplan

import (
	"context"
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namespaceProblem says why nothing can be installed in a namespace now; empty
// when it can. An operator needs exactly one OperatorGroup to tell it which
// namespaces it serves.
func (r *Reconciler) namespaceProblem(ctx context.Context, namespace string) (string, error) {
	groups := &operatorsv1.OperatorGroupList{}
	if err := r.client.List(ctx, groups, client.InNamespace(namespace)); err != nil {
		return "", fmt.Errorf("listing OperatorGroups of namespace %s: %w", namespace, err)
	}
	switch n := len(groups.Items); n {
	case 1:
		return "", nil
	case 0:
		return "no operator group found that is managing this namespace; create an OperatorGroup in it", nil
	default:
		return fmt.Sprintf("more than one operator group(s) are managing this namespace count=%d; delete all but one", n), nil
	}
}
