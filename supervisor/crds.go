package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/operator-framework/api/crds"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
)

// crdPollInterval is the polling interval for a new CustomResourceDefinition until the API server serves it.
const crdPollInterval = 200 * time.Millisecond

// InstallCRDs applies the CustomResourceDefinitions of operators.coreos.com, waits until the API server serves
// them, and reports each to out. It may be repeated. A field that another manager set to a different value is
// not changed and causes an error, unless force is given.
func InstallCRDs(ctx context.Context, cfg *rest.Config, out io.Writer, force ...client.ApplyOption) error {
	if _, err := excludeFromProxies(cfg); err != nil {
		return err
	}
	scheme, err := NewScheme()
	if err != nil {
		return err
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connecting to the API server at %s: %w", cfg.Host, err)
	}
	var failures []error
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{
		crds.CatalogSource(), crds.ClusterServiceVersion(), crds.InstallPlan(), crds.OLMConfig(),
		crds.Operator(), crds.OperatorCondition(), crds.OperatorGroup(), crds.Subscription(),
	} {
		result, err := installCRD(ctx, c, crd, force)
		if apierrors.IsConflict(err) {
			failures = append(failures, fmt.Errorf("customresourcedefinition %s was not changed: %w. The existing definition may suffice. To overwrite it, use --force-conflicts", crd.Name, err))
			continue
		}
		if err != nil {
			return errors.Join(append(failures, err)...)
		}
		if _, err := fmt.Fprintf(out, "customresourcedefinition %s: %s\n", crd.Name, result); err != nil {
			return fmt.Errorf("reporting on %s: %w", crd.Name, err)
		}
	}
	return errors.Join(failures...)
}

func installCRD(ctx context.Context, c client.Client, crd *apiextensionsv1.CustomResourceDefinition, force []client.ApplyOption) (apply.Result, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return "", fmt.Errorf("encoding %s: %w", crd.Name, err)
	}
	// The API server sets the status.
	unstructured.RemoveNestedField(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	result, err := applyCRD(ctx, c, &unstructured.Unstructured{Object: content}, force)
	if err != nil {
		return "", err
	}
	err = wait.PollUntilContextCancel(ctx, crdPollInterval, true, func(ctx context.Context) (bool, error) {
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

// applyCRD applies a definition and returns the result.
func applyCRD(ctx context.Context, c client.Client, crd *unstructured.Unstructured, force []client.ApplyOption) (apply.Result, error) {
	before := &apiextensionsv1.CustomResourceDefinition{}
	err := c.Get(ctx, client.ObjectKeyFromObject(crd), before)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading %s: %w", crd.GetName(), err)
	}
	if err := apply.Apply(ctx, c, crd, force...); err != nil {
		return "", fmt.Errorf("applying %s: %w", crd.GetName(), err)
	}
	switch before.ResourceVersion {
	case "":
		return apply.Created, nil
	case crd.GetResourceVersion():
		return apply.Unchanged, nil
	default:
		return apply.Updated, nil
	}
}

func served(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
			return true
		}
	}
	return false
}
