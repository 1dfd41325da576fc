package clusterserviceversion

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
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
	for _, by := range []string{"", "with the rights of ServiceAccount weak, which OperatorGroup own names"} {
		if err := (resourceDeleter{client: c, by: by}).delete(t.Context(), cup); err != nil {
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

// TestWritesOnlyOverWhatWasRead checks that a patch names the version that was read. A merge patch
// replaces whole lists, and labels decide who owns an object.
func TestWritesOnlyOverWhatWasRead(t *testing.T) {
	csv := kettle()
	csv.ResourceVersion = "7"
	role := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: "kettle", ResourceVersion: "7", Labels: ownership.Labels(csv)},
	}
	c, got := recording(t)
	w := &versionWriter{client: c, clock: clocktesting.NewFakePassiveClock(noon())}
	add := func(o client.Object, finalizer string) bool { o.SetFinalizers([]string{finalizer}); return true }
	err := errors.Join(w.setFinalizer(t.Context(), csv, add), ownerTransfer{client: c}.relabel(t.Context(), csv, role, types.NamespacedName{Namespace: "east", Name: "kettle.v1"}))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.patches) != 2 {
		t.Fatalf("%d patches, want 2", len(got.patches))
	}
	for _, body := range got.patches {
		if !strings.Contains(body, `"resourceVersion":"7"`) {
			t.Errorf("%s does not name the version that was read", body)
		}
	}
}

// TestConfirmsBeforeInstalling compares a version with the one in the API server.
func TestConfirmsBeforeInstalling(t *testing.T) {
	at := kettle()
	at.Generation, at.Status.Phase = 3, operatorsv1alpha1.CSVPhaseInstallReady
	for name, tt := range map[string]struct {
		reason string
		change func(*operatorsv1alpha1.ClusterServiceVersion)
		stale  bool
	}{
		"Same":     {"it is as it was read", func(*operatorsv1alpha1.ClusterServiceVersion) {}, false},
		"Another":  {"another one of the name has been made", func(c *operatorsv1alpha1.ClusterServiceVersion) { c.UID = "another" }, true},
		"Changed":  {"its spec has been changed", func(c *operatorsv1alpha1.ClusterServiceVersion) { c.Generation = 4 }, true},
		"Replaced": {"it is being replaced", func(c *operatorsv1alpha1.ClusterServiceVersion) { c.Status.Phase = operatorsv1alpha1.CSVPhaseReplacing }, true},
		"Deleted": {"it is being deleted", func(c *operatorsv1alpha1.ClusterServiceVersion) {
			c.DeletionTimestamp, c.Finalizers = &metav1.Time{Time: noon()}, []string{api.FinalizerCleanup}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			live := at.DeepCopy()
			tt.change(live)
			c := fake.NewClientBuilder().WithScheme(ownershipScheme(t)).WithObjects(live).Build()
			err := (&installer{live: c}).confirm(t.Context(), at)
			if got := errors.Is(err, apply.ErrStale); got != tt.stale || !got && err != nil {
				t.Errorf("%s: confirm() = %v, want apply.ErrStale: %t", tt.reason, err, tt.stale)
			}
		})
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

// TestOnlyCopiedRolesAreSurplus checks that cluster-scoped roles that a plan created for the
// version, and those of others, stay.
func TestOnlyCopiedRolesAreSurplus(t *testing.T) {
	csv := kettle()
	other := ownership.ManagedLabels(csv)
	other[api.LabelOwner], other[api.LabelLifted] = "pot.v1", "true"
	for name, tt := range map[string]struct {
		labels map[string]string
		want   int
	}{
		"copied": {copyLabels(csv), 2}, "of a plan": {ownership.ManagedLabels(csv), 0}, "of another version": {other, 0}, "unowned": {map[string]string{api.LabelLifted: "true"}, 0},
	} {
		meta := metav1.ObjectMeta{Name: "r", Labels: tt.labels}
		r := rbac{ClusterRoles: []rbacv1.ClusterRole{{ObjectMeta: meta}}, ClusterRoleBindings: []rbacv1.ClusterRoleBinding{{ObjectMeta: meta}}}
		if got := len(surplus(csv, clusterRBAC{}, r)); got != tt.want {
			t.Errorf("%s: %d objects are surplus, want %d", name, got, tt.want)
		}
	}
}

// TestFollowsOnlyItsOwnCopies has a ClusterRole and a ClusterRoleBinding of other owners under the
// names of an edited Role and RoleBinding. Their content is not copied.
func TestFollowsOnlyItsOwnCopies(t *testing.T) {
	for name, labels := range map[string]func(*operatorsv1alpha1.ClusterServiceVersion) map[string]string{
		"unowned":   func(*operatorsv1alpha1.ClusterServiceVersion) map[string]string { return nil },
		"of a plan": ownership.ManagedLabels,
	} {
		csv, r := boiling()
		have := desiredClusterRBAC(csv, true, r)
		have.Roles[0].Labels, have.Bindings[0].Labels = labels(csv), labels(csv)
		edited := r
		edited.ClusterRoles = []rbacv1.ClusterRole{*have.Roles[0]}
		edited.Roles = []rbacv1.Role{{ObjectMeta: labelled(csv, "r"), Rules: []rbacv1.PolicyRule{policy("*")}}}
		if got := desiredClusterRBAC(csv, true, edited); len(got.Roles) > 0 {
			t.Errorf("%s: an edited role is copied by a ClusterRole that is not its own", name)
		}
		rebound := r
		rebound.ClusterRoleBindings = []rbacv1.ClusterRoleBinding{*have.Bindings[0]}
		rebound.RoleBindings = []rbacv1.RoleBinding{{ObjectMeta: labelled(csv, "r"), RoleRef: roleRef("Role", "r")}}
		if got := desiredClusterRBAC(csv, true, rebound); len(got.Bindings) > 0 {
			t.Errorf("%s: an edited binding is copied by a ClusterRoleBinding that is not its own", name)
		}
	}
}

// TestCopiesOnlyLabelledRBAC has roles and bindings that hold what the version declares but
// lack its labels.
func TestCopiesOnlyLabelledRBAC(t *testing.T) {
	csv, r := boiling()
	r.Roles[0].Labels = nil
	if got := desiredClusterRBAC(csv, true, r); len(got.Roles) > 0 || len(got.Bindings) > 0 {
		t.Errorf("a role without labels is copied: %+v", got)
	}
	csv, r = boiling()
	r.RoleBindings[0].Labels = nil
	if got := desiredClusterRBAC(csv, true, r); len(got.Bindings) > 0 {
		t.Errorf("a binding without labels is copied: %+v", got.Bindings)
	}
}
