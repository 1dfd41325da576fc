package cleanup

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestDeletesTheCustomResourceThatWasListed checks that a deletion names the UID, so that another
// object of the name stays. It names no resource version, since the operator writes to the object
// often.
func TestDeletesTheCustomResourceThatWasListed(t *testing.T) {
	c, got := fixtures.RecordingClient(t)
	cup := mug("a", 0)
	cup.UID, cup.ResourceVersion = "listed", "7"
	for _, by := range []string{"", "as ServiceAccount weak of OperatorGroup own"} {
		if err := (resourceDeleter{client: c, actingAs: by}).delete(t.Context(), cup); err != nil {
			t.Fatal(err)
		}
	}
	for i, options := range got.Deletions {
		if diff := cmp.Diff(&metav1.Preconditions{UID: new(types.UID("listed"))}, options.Preconditions); diff != "" {
			t.Errorf("deletion %d: preconditions (-want +got):\n%s", i, diff)
		}
	}
	if len(got.Deletions) != 2 {
		t.Errorf("%d deletions, want 2", len(got.Deletions))
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
	c, got := fixtures.RecordingClient(t)
	err := (ownerTransfer{client: c}).relabel(t.Context(), csv, role, types.NamespacedName{Namespace: "east", Name: "kettle.v1"})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Patches) != 1 {
		t.Fatalf("%d patches, want 1", len(got.Patches))
	}
	for _, body := range got.Patches {
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
