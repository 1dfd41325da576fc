package cleanup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestCleanUpReadsTheRecordLive has a cache that lacks a change of a definition.
func TestCleanUpReadsTheRecordLive(t *testing.T) {
	cups := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Cup"}
	s := fixtures.Scheme(t)
	s.AddKnownTypeWithName(cups, &unstructured.Unstructured{})
	s.AddKnownTypeWithName(cups.GroupVersion().WithKind("CupList"), &unstructured.UnstructuredList{})
	definition := func(uid types.UID, versions ...string) *apiextensionsv1.CustomResourceDefinition {
		crd := cupDefinition(apiextensionsv1.NamespaceScoped, versions...)
		crd.UID = uid
		crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "cups", Kind: "Cup"}
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}}
		return crd
	}
	cases := map[string]struct {
		reason string
		live   *apiextensionsv1.CustomResourceDefinition
		stays  bool
		left   []string
	}{
		"Same": {reason: "the plan of the version brought it", live: definition("1", "a/kettle.v1")},
		"RecordRemoved": {
			reason: "an administrator took it from the version", live: definition("1"), stays: true,
			left: []string{"cups.example.com (because no install plan of this version created the definition)"},
		},
		"Recreated": {
			reason: "the new one belongs to another owner", live: definition("2"), stays: true,
			left: []string{"cups.example.com (because no install plan of this version created the definition)"},
		},
		"RecreatedByAPlan": {reason: "the record on the new one counts", live: definition("2", "a/kettle.v1")},
		"Deleted":          {reason: "its objects are gone with it", stays: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cup := &unstructured.Unstructured{}
			cup.SetGroupVersionKind(cups)
			cup.SetNamespace("a")
			cup.SetName("mine")
			objects := []client.Object{cup, boundedBy("a").group}
			if tc.live != nil {
				objects = append(objects, tc.live.DeepCopy())
			}
			c := fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build()
			cached := fake.NewClientBuilder().WithScheme(s).WithObjects(definition("1", "a/kettle.v1")).Build()
			csv := cupOwner("a", "a")
			csv.Spec.Cleanup.Enabled = true
			up := &cleanup{csv: csv, now: noon()}
			left, err := New(Options{Client: c, Live: c, CRDs: cached}).resources.clean(t.Context(), up)
			if err != nil || left.note != "" {
				t.Errorf("%s: error %v, note %q", tc.reason, err, left.note)
			}
			if diff := cmp.Diff(tc.left, left.kept); diff != "" {
				t.Errorf("%s: what is left -want, +got:\n%s", tc.reason, diff)
			}
			err = c.Get(t.Context(), client.ObjectKeyFromObject(cup), cup)
			if client.IgnoreNotFound(err) != nil || (err == nil) != tc.stays {
				t.Errorf("%s: reading the custom resource afterwards: %v", tc.reason, err)
			}
		})
	}
}
