package controlplane

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
)

// finalizerDiscarded keeps a discarded namespace in phase Terminating until the control plane stops.
const finalizerDiscarded = "chandlery.dev/discarded"

// IsDiscarded reports whether DiscardNamespace keeps a namespace in phase Terminating.
func IsDiscarded(namespace *corev1.Namespace) bool {
	return slices.Contains(namespace.Finalizers, finalizerDiscarded)
}

// reconciledKinds returns the namespaced resources that controllers act on, those first that create others.
func reconciledKinds() []schema.GroupVersionResource {
	operators := func(version, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "operators.coreos.com", Version: version, Resource: resource}
	}

	return []schema.GroupVersionResource{
		operators("v1alpha1", "subscriptions"),
		operators("v1alpha1", "installplans"),
		operators("v1alpha1", "clusterserviceversions"),
		operators("v1alpha1", "catalogsources"),
		operators("v1", "operatorgroups"),
		{Group: "apps", Version: "v1", Resource: "deployments"},
		{Version: "v1", Resource: "pods"},
	}
}

// DiscardNamespace deletes a namespace, and in it what controllers act on. The rest stays in a namespace that is
// Terminating. The namespace controller would list and delete each kind of the cluster instead: two requests for each, and
// again after an object with a finalizer. It deletes the content of namespaces that are being deleted already.
func (c *ControlPlane) DiscardNamespace(ctx context.Context, name string) error {
	namespaces := c.client.CoreV1().Namespaces()
	patch := fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, finalizerDiscarded)

	_, err := namespaces.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil // The test has deleted it. A namespace that is being deleted gets no finalizer.
	}

	if err != nil {
		return fmt.Errorf("keep namespace %s: %w", name, err)
	}

	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		namespace, err := namespaces.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err //nolint:wrapcheck // wrapped below
		}

		namespace.Spec.Finalizers = nil
		_, err = namespaces.Finalize(ctx, namespace, metav1.UpdateOptions{})

		return err //nolint:wrapcheck // wrapped below
	})
	if err != nil {
		return fmt.Errorf("finalize namespace %s: %w", name, err)
	}

	err = namespaces.Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil {
		return fmt.Errorf("delete namespace %s: %w", name, err)
	}

	return c.deleteReconciled(ctx, name)
}

func (c *ControlPlane) deleteReconciled(ctx context.Context, namespace string) error {
	objects, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}

	for _, kind := range reconciledKinds() {
		err := objects.Resource(kind).Namespace(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s in namespace %s: %w", kind.Resource, namespace, err)
		}
	}

	return nil
}
