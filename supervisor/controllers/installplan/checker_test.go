package installplan

import (
	"context"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// resources is a reader that returns as many custom resources as a request allows.
type resources struct {
	client.Reader

	all []unstructured.Unstructured
	// largest is the largest number of them in one answer.
	largest int
}

func (r *resources) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	list, o := into.(*unstructured.UnstructuredList), client.ListOptions{}
	o.ApplyOptions(opts)
	from, to := len(o.Continue), len(r.all)
	if o.Limit > 0 {
		to = min(to, from+int(o.Limit))
	}
	list.Items, list.Object = r.all[from:to], map[string]any{}
	if to < len(r.all) {
		list.SetContinue(strings.Repeat("x", to))
	}
	r.largest = max(r.largest, to-from)
	return nil
}

// TestCheckReadsFewAtOnce checks that an invalid custom resource is found on a later page, and that a
// page of the largest ones, of a tenant, fits into memory.
func TestCheckReadsFewAtOnce(t *testing.T) {
	const (
		largest = 3 << 19 // bytes of an object that etcd accepts
		allowed = 32 << 20
	)
	v, err := newValidator(apiextensionsv1.CustomResourceDefinitionVersion{
		Name: "v1",
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", Required: []string{"spec"},
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "string"}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	lamp := func(name string, content map[string]any) unstructured.Unstructured {
		u := unstructured.Unstructured{Object: content}
		u.SetNamespace("ops")
		u.SetName(name)
		return u
	}
	reader := &resources{}
	for range 100 {
		reader.all = append(reader.all, lamp("lit", map[string]any{"spec": "bright"}))
	}
	reader.all = append(reader.all, lamp("out", map[string]any{}))
	c := &checker{client: reader}
	complaint, err := c.pages(t.Context(), schema.GroupVersionKind{Group: "example", Version: "v1", Kind: "Lamp"}, v)
	if err != nil || !strings.Contains(complaint, "ops/out") {
		t.Errorf("complaint %q, error %v", complaint, err)
	}
	if reader.largest*largest > allowed {
		t.Errorf("%d custom resources are read at once: their %d bytes exceed %d", reader.largest, reader.largest*largest, allowed)
	}
}
