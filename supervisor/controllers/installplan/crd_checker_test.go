package installplan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/listpages"
)

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
	reader := &listpages.Reader[unstructured.Unstructured]{}
	for range 100 {
		reader.All = append(reader.All, lamp("lit", map[string]any{"spec": "bright"}))
	}
	reader.All = append(reader.All, lamp("out", map[string]any{}))
	c := &crdChecker{client: reader}
	lamps := schema.GroupVersionKind{Group: "example", Version: "v1", Kind: "Lamp"}
	reader.Again = func(ctx context.Context) error {
		_, err := c.findInvalidIn(ctx, lamps, v)
		return err
	}
	complaint, err := c.findInvalidIn(t.Context(), lamps, v)
	if err != nil || !strings.Contains(complaint, "ops/out") {
		t.Errorf("complaint %q, error %v", complaint, err)
	}
	reader.Check(t, listpages.WholeObject)
}

// lamps is a client that returns the same objects for every kind.
type lamps struct {
	client.Reader

	list []unstructured.Unstructured
}

func (l *lamps) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*unstructured.UnstructuredList).Items = l.list //nolint:forcetypeassert // nothing else is listed
	return nil
}

// TestRevert checks that a plan that reverts a definition examines the stored objects first: many
// may have been stored since the plan was created.
func TestRevert(t *testing.T) {
	const (
		served = `"status":{"storedVersions":["v1"],"conditions":[{"type":"Established","status":"True"},{"type":"NamesAccepted","status":"True"}]}`
		crd    = `{"kind":"CustomResourceDefinition","metadata":{"name":"lamps.example"},"spec":{"group":"example","names":{"kind":"Lamp","plural":"lamps"},%s"versions":[` +
			`{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{%s}}}}%s]},%s}`
		bright  = `"bright":{"type":"boolean"}`
		webhook = `"conversion":{"strategy":"Webhook"},`
		v2      = `,{"name":"v2","served":true}`
	)
	for _, tt := range []struct {
		reason      string
		live, older string
		object      string
		declares    bool
		want        string
	}{
		{reason: "the same", live: fmt.Sprintf(crd, "", bright, "", served), older: fmt.Sprintf(crd, "", bright, "", served), object: `{"bright":true}`},
		{reason: "a field that no object uses", live: fmt.Sprintf(crd, "", bright, "", served), older: fmt.Sprintf(crd, "", "", "", served), object: `{}`},
		{
			reason: "a field that an object uses now", live: fmt.Sprintf(crd, "", bright, "", served), older: fmt.Sprintf(crd, "", "", "", served), object: `{"bright":true}`,
			want: "uses field v1 bright, which lamp.v1 does not know and would drop; remove these obstacles; the plan then continues automatically",
		},
		{reason: "a definition that is not served has no objects", live: fmt.Sprintf(crd, "", bright, "", `"status":{}`), older: fmt.Sprintf(crd, "", "", "", served), object: `{"bright":true}`},
		{reason: "no webhook any more", live: fmt.Sprintf(crd, webhook, "", v2, served), older: fmt.Sprintf(crd, "", "", v2, served), want: "by a webhook, which lamp.v1 does not have"},
		{reason: "a webhook that it declares", live: fmt.Sprintf(crd, webhook, "", v2, served), older: fmt.Sprintf(crd, "", "", v2, served), declares: true},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			stored := &lamps{}
			if tt.object != "" {
				stored.list = []unstructured.Unstructured{*parsed(t, tt.object)}
			}
			csv := parsed(t, `{"kind":"ClusterServiceVersion","metadata":{"name":"lamp.v1"}}`)
			if tt.declares {
				csv = parsed(t, `{"kind":"ClusterServiceVersion","metadata":{"name":"lamp.v1"},"spec":{"webhookdefinitions":[{"type":"ConversionWebhook","conversionCRDs":["lamps.example"]}]}}`)
			}
			c := &crdChecker{client: stored}
			err := c.checkRevert(t.Context(), &crdState{
				version: types.NamespacedName{Namespace: "ops", Name: "lamp.v1"}, csv: csv, live: parsed(t, tt.live), bundle: parsed(t, tt.older),
			})
			if (err != nil) != (tt.want != "") || err != nil && (!errors.Is(err, errUnsafe) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
