package cleanup

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
)

// ownershipScheme has versions and roles.
func ownershipScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{operatorsv1alpha1.AddToScheme, rbacv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// writes holds the preconditions of deletions and the bodies of patches that a client received.
type writes struct {
	deletions []client.DeleteOptions
	patches   []string
}

// recording returns a client of some objects that records its writes and performs none of them.
func recording(t *testing.T, objects ...client.Object) (client.WithWatch, *writes) {
	t.Helper()
	w := &writes{}
	plain := fake.NewClientBuilder().WithScheme(ownershipScheme(t)).WithObjects(objects...).Build()
	return interceptor.NewClient(plain, interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.DeleteOption) error {
			var options client.DeleteOptions
			options.ApplyOptions(opts)
			w.deletions = append(w.deletions, options)
			return nil
		},
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
			body, err := patch.Data(o)
			w.patches = append(w.patches, string(body))
			return err
		},
	}), w
}

// TestDeletesTheCustomResourceThatWasListed checks that a deletion names the UID, so that another
// object of the name stays. It names no resource version, since the operator writes to the object
// often.
func TestDeletesTheCustomResourceThatWasListed(t *testing.T) {
	c, got := recording(t)
	cup := mug("a", 0)
	cup.UID, cup.ResourceVersion = "listed", "7"
	for _, by := range []string{"", "as ServiceAccount weak of OperatorGroup own"} {
		if err := (resourceDeleter{client: c, actingAs: by}).delete(t.Context(), cup); err != nil {
			t.Fatal(err)
		}
	}
	for i, options := range got.deletions {
		if diff := cmp.Diff(&metav1.Preconditions{UID: new(types.UID("listed"))}, options.Preconditions); diff != "" {
			t.Errorf("deletion %d: preconditions (-want +got):\n%s", i, diff)
		}
	}
	if len(got.deletions) != 2 {
		t.Errorf("%d deletions, want 2", len(got.deletions))
	}
}

// TestRelabelsOnlyWhatWasRead checks that a patch names the version that was read. Labels
// decide who owns an object.
func TestRelabelsOnlyWhatWasRead(t *testing.T) {
	csv := kettle()
	role := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: "kettle", ResourceVersion: "7", Labels: ownership.Labels(csv)},
	}
	c, got := recording(t)
	err := (ownerTransfer{client: c}).relabel(t.Context(), csv, role, types.NamespacedName{Namespace: "east", Name: "kettle.v1"})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.patches) != 1 {
		t.Fatalf("%d patches, want 1", len(got.patches))
	}
	for _, body := range got.patches {
		if !strings.Contains(body, `"resourceVersion":"7"`) {
			t.Errorf("%s does not name the version that was read", body)
		}
	}
}

// TestObjectsLeftBehind checks which labelled objects a clean-up deletes.
func TestObjectsLeftBehind(t *testing.T) {
	csv := kettle()
	object := func(namespace, name string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	for name, tt := range map[string]struct {
		reason string
		kind   kind
		object *metav1.PartialObjectMetadata
		want   bool
	}{
		"Cluster":    {"nothing else removes what is in no namespace", roles()[0], object("", "kettle"), true},
		"Elsewhere":  {"or in another one", roles()[1], object("kube-system", "kettle"), true},
		"Home":       {"what is at home follows its owner", roles()[1], object(csv.Namespace, "kettle"), false},
		"Copy":       {"a copy goes with its original", copies(), object("pantry", csv.Name), true},
		"OtherCopy":  {"that of another version stays", copies(), object("pantry", "pot.v1"), false},
		"TheVersion": {"and the version is no copy of itself", copies(), object(csv.Namespace, csv.Name), false},
	} {
		if got := tt.kind.belongs(csv, tt.object); got != tt.want {
			t.Errorf("%s: %s: belongs = %t, want %t", name, tt.reason, got, tt.want)
		}
	}
}
