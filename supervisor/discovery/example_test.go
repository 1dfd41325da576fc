package discovery_test

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/chandlery/chandlery/supervisor/discovery"
)

// ExampleFinder_Find checks for an API that a program cannot work without. It prints the permissions that the program
// lacks.
func ExampleFinder_Find() {
	check := func(ctx context.Context, config *rest.Config) error {
		finder, err := discovery.New(config, discovery.Options{})
		if err != nil {
			return fmt.Errorf("preparing the check: %w", err)
		}
		_, err = finder.Find(ctx, discovery.Required, discovery.Target{
			GroupVersionKind: schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"},
			Resource:         "servicemonitors",
			Operator:         discovery.OperatorRef{Selector: "app.kubernetes.io/name=prometheus-operator"},
		})
		if forbidden, ok := errors.AsType[*discovery.ForbiddenError](err); ok {
			fmt.Println(forbidden.Result.Grant) // a Role and its binding
		}
		return err //nolint:wrapcheck // It names the API and the remedy.
	}
	_ = check
	// Output:
}
