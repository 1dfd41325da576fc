package openshift

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/discovery"
)

// List returns the objects of a kind of OpenShift, by namespace and name. There are none if the supervisor does not use
// OpenShift's API, or if the cluster lacks the API or the kind. result is the last check of the API. An error means that
// the objects are not known.
//
// The reader must not be a cache: the kind may be missing.
func List(ctx context.Context, reader client.Reader, result discovery.Result, kind schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	if result.Outcome == discovery.Skipped || result.Outcome == discovery.NotInstalled {
		return nil, nil
	}
	if err := result.Err(); err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := reader.List(ctx, list)
	if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind.Kind, err)
	}
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return list.Items, nil
}
