package installplan

import (
	"context"
	"fmt"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandlery/chandlery/supervisor/rollback"
)

// revert returns an error if an object would lose data when the definition of an older version
// replaces the live one.
func (e *execution) revert(ctx context.Context, live, u *unstructured.Unstructured) error {
	before, err := typedCRD(live)
	if err != nil {
		return err
	}
	after, err := typedCRD(u)
	if err != nil {
		return err
	}
	older, err := e.olderBundle(ctx)
	if err != nil {
		return err
	}
	obstacles := older.Obstacles(before, after)
	if established(live) {
		objects := rollback.Objects{Reader: e.checker.client, Grants: e.checker.grants}
		used, err := objects.Using(ctx, before, older.Lost(before, after), e.reverts)
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
func (e *execution) olderBundle(ctx context.Context) (rollback.Bundle, error) {
	csv, err := e.content.version(ctx, e.reverts)
	if err != nil {
		return rollback.Bundle{}, fmt.Errorf("reading ClusterServiceVersion %s, which is gone back to: %w", e.reverts, err)
	}
	older := rollback.Bundle{Version: &operatorsv1alpha1.ClusterServiceVersion{}}
	older.Version.Name = e.reverts
	if csv == nil {
		return older, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(csv.Object, older.Version); err != nil {
		return rollback.Bundle{}, fmt.Errorf("%w: reading ClusterServiceVersion %s, which is gone back to: %w", errUnsafe, e.reverts, err)
	}
	return older, nil
}
