package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/operator-framework/api/crds"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
)

// crdPoll is how often a new CustomResourceDefinition is looked at until the
// API server serves it.
const crdPoll = 200 * time.Millisecond

// InstallCRDs applies the CustomResourceDefinitions of operators.coreos.com and
// waits until the API server serves them, telling out about each. It may be
// repeated.
func InstallCRDs(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	scheme, err := NewScheme()
	if err != nil {
		return err
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connecting to the API server at %s: %w", cfg.Host, err)
	}
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{
		crds.CatalogSource(), crds.ClusterServiceVersion(), crds.InstallPlan(), crds.OLMConfig(),
		crds.Operator(), crds.OperatorCondition(), crds.OperatorGroup(), crds.Subscription(),
	} {
		result, err := installCRD(ctx, c, crd)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "customresourcedefinition %s: %s\n", crd.Name, result); err != nil {
			return fmt.Errorf("reporting on %s: %w", crd.Name, err)
		}
	}
	return nil
}

func installCRD(ctx context.Context, c client.Client, crd *apiextensionsv1.CustomResourceDefinition) (apply.Result, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return "", fmt.Errorf("encoding %s: %w", crd.Name, err)
	}
	// What the API server fills in is not ours to set.
	unstructured.RemoveNestedField(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	result, err := apply.Object(ctx, c, &unstructured.Unstructured{Object: content})
	if err != nil {
		return "", err
	}
	err = wait.PollUntilContextCancel(ctx, crdPoll, true, func(ctx context.Context) (bool, error) {
		live := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(crd), live); err != nil {
			return false, fmt.Errorf("reading %s back: %w", crd.Name, err)
		}
		return served(live), nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return "", fmt.Errorf("waiting for the API server to serve %s: %w", crd.Name, err)
	}
	return result, err //nolint:wrapcheck // the callback's errors are wrapped, a cancellation is the caller's own
}

func served(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
			return true
		}
	}
	return false
}
