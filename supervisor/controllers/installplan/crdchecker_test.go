package installplan

import (
	"context"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/listpages"
)

// resources is a reader that returns as many custom resources as a request allows.
type resources struct {
	client.Reader

	all   []unstructured.Unstructured
	pages listpages.Recorder[unstructured.Unstructured]
}

func (r *resources) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	list, o := into.(*unstructured.UnstructuredList), client.ListOptions{}
	o.ApplyOptions(opts)
	from, to := len(o.Continue), len(r.all)
	if o.Limit > 0 {
		to = min(to, from+int(o.Limit))
	}
	items := slices.Clone(r.all[from:to])
	r.pages.Page(ctx, items)
	list.Items, list.Object = items, map[string]any{}
	if to < len(r.all) {
		list.SetContinue(strings.Repeat("x", to))
	}
	return nil
}

// TestCheckReadsFewAtOnce checks that an invalid custom resource is found on a later page, that a page
// of the largest ones, of a tenant, fits into memory, and that the process reads one page at a time.
func TestCheckReadsFewAtOnce(t *testing.T) {
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
	c := &crdChecker{client: reader}
	lamps := schema.GroupVersionKind{Group: "example", Version: "v1", Kind: "Lamp"}
	reader.pages.Again = func(ctx context.Context) error {
		_, err := c.findInvalidIn(ctx, lamps, v)
		return err
	}
	complaint, err := c.findInvalidIn(t.Context(), lamps, v)
	if err != nil || !strings.Contains(complaint, "ops/out") {
		t.Errorf("complaint %q, error %v", complaint, err)
	}
	reader.pages.Check(t, listpages.WholeObject)
}
