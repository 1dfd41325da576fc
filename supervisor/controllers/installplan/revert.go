package installplan

import (
	"context"
	"fmt"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandlery/chandlery/supervisor/rollback"
)

// checkRevert returns an error if an object would lose data when the definition of an older version
// replaces the live one.
func (c *crdChecker) checkRevert(ctx context.Context, s *crdState) error {
	before, err := typedCRD(s.live)
	if err != nil {
		return err
	}
	after, err := typedCRD(s.bundle)
	if err != nil {
		return err
	}
	older, err := s.olderBundle()
	if err != nil {
		return err
	}
	obstacles := older.Obstacles(before, after)
	if established(s.live) {
		objects := rollback.Objects{Reader: c.client, Lender: c.lender}
		used, err := objects.Using(ctx, before, older.Lost(before, after), s.version.Name)
		if err != nil {
			return err //nolint:wrapcheck // it says which kind
		}
		obstacles = append(obstacles, used...)
	}
	if len(obstacles) > 0 {
		return fmt.Errorf("%w: %s; fix what is named, and the plan goes on by itself", errUnsafe, strings.Join(obstacles, ", "))
	}
	return nil
}

// olderBundle returns the older version that the plan reverts to.
func (s *crdState) olderBundle() (rollback.Bundle, error) {
	older := rollback.Bundle{Version: &operatorsv1alpha1.ClusterServiceVersion{}}
	older.Version.Name = s.version.Name
	if s.csv == nil {
		return older, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(s.csv.Object, older.Version); err != nil {
		return rollback.Bundle{}, fmt.Errorf("%w: reading ClusterServiceVersion %s, which is gone back to: %w", errUnsafe, s.version.Name, err)
	}
	return older, nil
}
