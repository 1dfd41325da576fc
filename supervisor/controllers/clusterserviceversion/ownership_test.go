package clusterserviceversion

import (
	"errors"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestWritesOnlyOverWhatWasRead checks that a patch names the version that was read. A merge patch
// replaces whole lists.
func TestWritesOnlyOverWhatWasRead(t *testing.T) {
	csv := kettle()
	csv.ResourceVersion = "7"
	c, got := fixtures.RecordingClient(t)
	w := &versionWriter{client: c, clock: clocktesting.NewFakePassiveClock(noon())}
	add := func(o client.Object, finalizer string) bool { o.SetFinalizers([]string{finalizer}); return true }
	if err := w.setFinalizer(t.Context(), csv, add); err != nil {
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
			c := fake.NewClientBuilder().WithScheme(fixtures.Scheme(t)).WithObjects(live).Build()
			err := (&installer{live: c}).confirm(t.Context(), at)
			if got := errors.Is(err, apply.ErrStale); got != tt.stale || !got && err != nil {
				t.Errorf("%s: confirm() = %v, want apply.ErrStale: %t", tt.reason, err, tt.stale)
			}
		})
	}
}

// TestObsoleteCopiesAreCopies checks that cluster-scoped roles that a plan created for the
// version, and those of others, stay.
func TestObsoleteCopiesAreCopies(t *testing.T) {
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
		if got := len(obsoleteCopies(csv, clusterRBAC{}, r)); got != tt.want {
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
