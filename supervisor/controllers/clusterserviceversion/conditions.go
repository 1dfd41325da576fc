package clusterserviceversion

import (
	"context"
	"fmt"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/opcondition"
)

// observeConditions reads from the OperatorConditions of the predecessor and of the version why an
// upgrade must wait.
func (r *reconciler) observeConditions(ctx context.Context, s *scope) error {
	var err error
	if p := s.Replacement.Predecessor; p != nil {
		if s.Replacement.Refused, err = notUpgradeable(ctx, r.client, client.ObjectKey{Namespace: s.CSV.Namespace, Name: p.Name}); err != nil {
			return err
		}
	}
	if s.Replacement.Successor == nil {
		return nil
	}
	s.Replacement.Held, err = notUpgradeable(ctx, r.client, client.ObjectKeyFromObject(s.CSV))
	if err == nil && s.Replacement.Held == "" {
		// A version that hands over does not revert that. The cache may lack the condition that the
		// operator has just reported.
		s.Replacement.Held, err = notUpgradeable(ctx, r.live, client.ObjectKeyFromObject(s.CSV))
	}
	return err
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
