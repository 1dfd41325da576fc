package clusterserviceversion

import (
	"context"
	"fmt"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/operatorcondition/verdict"
)

// observeConditions reads from the OperatorConditions on both ends of an upgrade what
// holds it.
func (r *reconciler) observeConditions(ctx context.Context, s *scope) error {
	var err error
	if p := s.Replacement.Predecessor; p != nil {
		if s.Replacement.Refused, err = r.refusal(ctx, s.CSV.Namespace, p.Name); err != nil {
			return err
		}
	}
	if s.Replacement.Successor != nil {
		s.Replacement.Held, err = r.refusal(ctx, s.CSV.Namespace, s.CSV.Name)
	}
	return err
}

// refusal returns why the operator of a ClusterServiceVersion must not be replaced; it is
// empty when it may.
func (r *reconciler) refusal(ctx context.Context, namespace, name string) (string, error) {
	condition := &operatorsv2.OperatorCondition{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, condition, readOnly)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("getting OperatorCondition %s/%s: %w", namespace, name, err)
	}
	_, message := verdict.Upgradeable(condition)
	return message, nil
}
