package clusterserviceversion

import (
	"context"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api/opcondition"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
)

// notUpgradeable returns why the predecessor of a version, and the version itself, must not be
// replaced; empty when they may be. It reads their OperatorConditions.
func (o *observer) notUpgradeable(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, r phase.Replacement) (refused, held string, err error) {
	if r.Predecessor != nil {
		if refused, err = notUpgradeable(ctx, o.client, client.ObjectKey{Namespace: csv.Namespace, Name: r.Predecessor.Name}); err != nil {
			return "", "", err
		}
	}
	if r.Successor == nil {
		return refused, "", nil
	}
	held, err = notUpgradeable(ctx, o.client, client.ObjectKeyFromObject(csv))
	if err == nil && held == "" {
		// A version that hands over does not revert that. The cache may lack the condition that the
		// operator has just reported.
		held, err = notUpgradeable(ctx, o.live, client.ObjectKeyFromObject(csv))
	}
	return refused, held, err
}

// notUpgradeable returns why the operator of a ClusterServiceVersion must not be replaced; empty
// when it may be.
func notUpgradeable(ctx context.Context, from client.Reader, csv client.ObjectKey) (string, error) {
	condition := &operatorsv2.OperatorCondition{}
	err := from.Get(ctx, csv, condition, readOnly)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("getting OperatorCondition %s: %w", csv, err)
	}
	_, message := opcondition.Upgradeable(condition)
	return message, nil
}
