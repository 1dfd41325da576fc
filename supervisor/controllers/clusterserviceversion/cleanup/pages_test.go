package cleanup

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/listpages"
)

// largeMetadata returns an object of a version with metadata that no clean-up reads.
func largeMetadata(version client.Object, namespace, name string) metav1.PartialObjectMetadata {
	o := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("u-" + name), ResourceVersion: "7", GenerateName: "x",
		Labels: map[string]string{
			api.LabelOwner: version.GetName(), api.LabelOwnerNamespace: version.GetNamespace(), api.LabelOwnerKind: "ClusterServiceVersion",
			api.PrefixComponent + "kettle.a": "", "team": "tea",
		},
		Annotations:     map[string]string{"note": strings.Repeat("x", 1<<10)},
		OwnerReferences: []metav1.OwnerReference{{Name: "x"}},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "x"}},
	}}
	for i := range 1000 {
		o.Finalizers = append(o.Finalizers, fmt.Sprintf("example.com/%03d", i))
	}
	return o
}

// TestSweepKeepsFewMetadata checks that a clean-up reads the metadata of few objects at once, and keeps
// only the parts that it reads.
func TestSweepKeepsFewMetadata(t *testing.T) {
	csv := kettle()
	now := metav1.NewTime(noon())
	for _, tt := range []struct {
		reason    string
		kind      kind
		namespace string
		labels    map[string]string
	}{
		{reason: "an object of a tenant, which is not handed over", kind: roles()[1], namespace: "tenant"},
		{
			reason: "an object that another version may take over", kind: roles()[0],
			labels: map[string]string{
				api.LabelOwner: csv.Name, api.LabelOwnerNamespace: csv.Namespace, api.PrefixComponent + "kettle.a": "",
			},
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			reader := &listpages.Reader[metav1.PartialObjectMetadata]{}
			for i := range 40 {
				reader.All = append(reader.All, largeMetadata(csv, tt.namespace, fmt.Sprintf("role-%02d", i)))
			}
			reader.All[39].DeletionTimestamp = &now
			r := &Cleaner{live: reader}
			reader.Again = func(ctx context.Context) error {
				_, err := r.find(ctx, csv, tt.kind)
				return err
			}
			found, err := r.find(t.Context(), csv, tt.kind)
			if err != nil || len(found) != len(reader.All) {
				t.Fatalf("found %d objects, error %v", len(found), err)
			}
			want := metav1.PartialObjectMetadata{
				TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: tt.kind.gvk.Kind},
				ObjectMeta: metav1.ObjectMeta{
					Namespace: tt.namespace, Name: "role-39", UID: "u-role-39", ResourceVersion: "7", Labels: tt.labels,
					DeletionTimestamp: &now,
				},
			}
			if n := len(found[39].Finalizers); n == 0 || n > 100 {
				t.Errorf("%d finalizers are kept", n)
			}
			found[39].Finalizers = nil
			if diff := cmp.Diff(want, found[39]); diff != "" {
				t.Errorf("what is kept of an object (-want +got):\n%s", diff)
			}
			reader.Check(t, listpages.Metadata)
		})
	}
}

// TestCleanUpReadsFewAtOnce checks that a clean-up reads the metadata of few custom resources at once.
func TestCleanUpReadsFewAtOnce(t *testing.T) {
	cups := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Cup"}
	csv := kettle()
	reader := &listpages.Reader[metav1.PartialObjectMetadata]{}
	for i := range 120 {
		o := largeMetadata(csv, "kitchen", fmt.Sprintf("cup-%03d", i))
		o.DeletionTimestamp = &metav1.Time{Time: noon()}
		reader.All = append(reader.All, o)
	}
	pass := func() *resourcePass {
		return &resourcePass{
			cleanup: &cleanup{csv: csv, now: noon()}, cleaner: New(Options{Live: reader}).resources, forbiddenIn: sets.New[string](),
		}
	}
	clean := func(ctx context.Context, p *resourcePass) error {
		return p.cleanKind(ctx, cupDefinition(apiextensionsv1.NamespaceScoped), cups, scope{in: []string{"kitchen"}})
	}
	reader.Again = func(ctx context.Context) error { return clean(ctx, pass()) }
	p := pass()
	if err := clean(t.Context(), p); err != nil || p.left.count != 120 || p.terminating != 120 {
		t.Errorf("%d left, %d terminating, error %v", p.left.count, p.terminating, err)
	}
	reader.Check(t, listpages.Metadata)
}
