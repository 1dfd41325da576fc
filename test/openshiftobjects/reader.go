// Package openshiftobjects stands for the API server of an OpenShift cluster in tests without one.
package openshiftobjects

import (
	"context"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/discovery"
)

// Specs are the specs of objects, by their kind and by NAME or NAMESPACE/NAME.
type Specs map[string]map[string]any

// Scopes returns the specs of one ClusterImagePolicy for images.
func Scopes(images ...any) Specs {
	return Specs{"ClusterImagePolicy": {"acme": map[string]any{"scopes": images}}}
}

// Reader lists objects. Its other methods must not be called.
type Reader struct {
	client.Reader

	// Specs are the objects. A kind that is missing does not exist in the cluster.
	Specs Specs
	// Err is the error of each request; nil for none.
	Err error
}

// List lists the objects of a kind in no certain order.
func (r *Reader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if r.Err != nil {
		return r.Err
	}
	found, ok := list.(*unstructured.UnstructuredList)
	if !ok {
		return &apimeta.NoKindMatchError{}
	}
	specs := r.Specs[strings.TrimSuffix(found.GetKind(), "List")]
	if specs == nil {
		return &apimeta.NoKindMatchError{}
	}
	for key, spec := range specs {
		object := unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		object.SetName(key)
		if namespace, name, ok := strings.Cut(key, "/"); ok {
			object.SetNamespace(namespace)
			object.SetName(name)
		}
		found.Items = append(found.Items, object)
	}
	return nil
}

// Checked returns a check of OpenShift's API with an outcome.
func Checked(outcome discovery.Outcome) discovery.Result {
	return discovery.Result{Verdict: discovery.Verdict{Outcome: outcome, Reason: discovery.ReasonMayNotList}}
}
