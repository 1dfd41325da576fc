package cleanup

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestRemoveRecords has definitions with records of install plans, and a version that is deleted.
func TestRemoveRecords(t *testing.T) {
	definition := func(name string, annotations map[string]string) client.Object {
		crd := cupDefinition(apiextensionsv1.NamespaceScoped)
		crd.Name, crd.UID, crd.Annotations = name, types.UID("uid-"+name), annotations
		return crd
	}
	const prefix = "operatorframework.io/installed-alongside-"
	foreign := []client.Object{
		definition("bare.example.com", nil),
		definition("others.example.com", map[string]string{prefix + "1": "b/kettle.v1", prefix + "2": "a/kettle.v2", "example.com/note": "a/kettle.v1"}),
	}
	ours := definition("ours.example.com", map[string]string{prefix + "1": "a/kettle.v1", prefix + "2": "b/pot.v1"})
	twice := definition("twice.example.com", map[string]string{prefix + "0": "a/kettle.v1", prefix + "1": "a/kettle.v1"})
	const (
		patchOurs  = `ours.example.com {"metadata":{"annotations":{"operatorframework.io/installed-alongside-1":null},"uid":"uid-ours.example.com"}}`
		patchTwice = `twice.example.com {"metadata":{"annotations":{"operatorframework.io/installed-alongside-0":null,` +
			`"operatorframework.io/installed-alongside-1":null},"uid":"uid-twice.example.com"}}`
	)
	broken := errors.New("not now")
	cases := map[string]struct {
		reason      string
		definitions []client.Object
		fails       error // of patches
		want        []string
		err         error
	}{
		"None":   {"a version without records costs no request", foreign, nil, nil, nil},
		"Own":    {"one patch removes the records of a definition", append([]client.Object{ours, twice}, foreign...), nil, []string{patchOurs, patchTwice}, nil},
		"Gone":   {"a definition that was deleted has no record", []client.Object{ours}, apierrors.NewNotFound(schema.GroupResource{}, "ours"), []string{patchOurs}, nil},
		"Broken": {"the version stays while its record does", []client.Object{ours}, broken, []string{patchOurs}, broken},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var patches []string
			c := interceptor.NewClient(nil, interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
					body, err := patch.Data(o)
					patches = append(patches, o.GetName()+" "+string(body))
					return errors.Join(err, tc.fails)
				},
			})
			r := &Cleaner{client: c, crds: memory(t, tc.definitions...)}
			left, err := r.removeRecords(t.Context(), &cleanup{csv: cupOwner("a", "a")})
			if !left.isDone() || !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
				t.Errorf("%s: left %v, error %v", tc.reason, left, err)
			}
			if diff := cmp.Diff(tc.want, patches); diff != "" {
				t.Errorf("%s: patches -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
