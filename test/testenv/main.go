// Package testenv is what tests on a control plane share: the TestMain of a package, and a World for each test.
//
//	func TestMain(m *testing.M) {
//		os.Exit(testenv.Main(m, controlplane.Options{Nodes: -1}, testenv.InstallCRDs))
//	}
//
//	func TestSomething(t *testing.T) {
//		w := testenv.New(t)
//		w.StartManager(ctrl.Options{}, func(mgr testenv.Manager) error { return something.Setup(mgr) })
//		w.Create(group)
//		w.EventuallySucceeds(func(g gomega.Gomega) { … })
//	}
//
// Its folder fixtures has the objects that several suites create.
package testenv

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"github.com/operator-framework/api/crds"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api/scheme"
	"github.com/chandlery/chandlery/test/controlplane"
)

// Main runs the tests of a package on a new control plane and returns the exit code for TestMain. Functions such as
// InstallCRDs prepare the control plane, in their order.
func Main(m *testing.M, o controlplane.Options, prepare ...func(context.Context, *controlplane.ControlPlane) error) int {
	logf.SetLogger(Logger())
	return controlplane.Main(m, o, prepare...)
}

// Logger returns a logger that discards everything, or writes to standard error if CHANDLERY_TEST_LOGS is set.
func Logger() logr.Logger {
	handler := slog.DiscardHandler
	if os.Getenv("CHANDLERY_TEST_LOGS") != "" {
		handler = slog.NewTextHandler(os.Stderr, nil)
	}
	return logr.FromSlogHandler(handler)
}

// InstallCRDs applies the CustomResourceDefinitions of operators.coreos.com server-side, as an installation does, and
// waits until the API server serves them.
func InstallCRDs(ctx context.Context, cp *controlplane.ControlPlane) error {
	kinds, err := scheme.New()
	if err != nil {
		return fmt.Errorf("making a scheme: %w", err)
	}
	c, err := client.New(cp.Config(), client.Options{Scheme: kinds})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	all := []*apiextensionsv1.CustomResourceDefinition{
		crds.CatalogSource(), crds.ClusterServiceVersion(), crds.InstallPlan(), crds.OLMConfig(),
		crds.Operator(), crds.OperatorCondition(), crds.OperatorGroup(), crds.Subscription(),
	}
	for _, crd := range all {
		if err := applyCRD(ctx, c, crd); err != nil {
			return err
		}
	}
	for _, crd := range all {
		if err := awaitServed(ctx, c, crd); err != nil {
			return fmt.Errorf("waiting for %s to be served: %w", crd.Name, err)
		}
	}
	return nil
}

func applyCRD(ctx context.Context, c client.Client, crd *apiextensionsv1.CustomResourceDefinition) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return fmt.Errorf("converting CRD %s: %w", crd.Name, err)
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	applied := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: content})
	if err := c.Apply(ctx, applied, client.FieldOwner("test"), client.ForceOwnership); err != nil {
		return fmt.Errorf("applying CRD %s: %w", crd.Name, err)
	}
	return nil
}

// awaitServed lists the objects of each served version of a definition until that succeeds.
func awaitServed(ctx context.Context, c client.Client, crd *apiextensionsv1.CustomResourceDefinition) error {
	return wait.PollUntilContextTimeout(ctx, Polling, Patience, true, func(ctx context.Context) (bool, error) {
		return !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion(crd.Spec.Group + "/" + v.Name)
			list.SetKind(crd.Spec.Names.ListKind)
			return v.Served && c.List(ctx, list) != nil
		}), nil
	})
}
