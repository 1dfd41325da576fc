package copiedcsv

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// writerOf returns a writer that uses a client.
func writerOf(t *testing.T, c client.Client) writer {
	t.Helper()
	counts, err := newCounts(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return writer{client: c, live: c, clock: testclock.NewFakePassiveClock(noon()), limits: newLimits(1000, 1000), counts: counts}
}

// TestDeletesObservedObjectsOnly checks that a deletion names the UID of the observed object, so that a
// newer object of that name stays.
func TestDeletesObservedObjectsOnly(t *testing.T) {
	for _, action := range []action{deleteCopy, deleteBinding, deleteRole} {
		var got []*metav1.Preconditions
		c := interceptor.NewClient(nil, interceptor.Funcs{
			Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.DeleteOption) error {
				var options client.DeleteOptions
				options.ApplyOptions(opts)
				got = append(got, options.Preconditions)
				return nil
			},
		})
		seen := step{action: action, namespace: "pantry", name: "kettle.v1", uid: "seen"}
		if _, err := writerOf(t, c).execute(t.Context(), seen, copyTemplate{}); err != nil {
			t.Errorf("%s: %v", action, err)
		}
		if diff := cmp.Diff([]*metav1.Preconditions{{UID: new(types.UID("seen"))}}, got); diff != "" {
			t.Errorf("%s: preconditions of deletions -want, +got:\n%s", action, diff)
		}
	}
}

// TestReadsOwnRBACOnly has a role in a target namespace under the name of a copied role of
// kitchen/kettle.v1. Users of the namespace can set its labels.
func TestReadsOwnRBACOnly(t *testing.T) {
	scheme := fixtures.Scheme(t)
	labels := func(owner, namespace, from string) map[string]string {
		l := map[string]string{"olm.owner": owner, "olm.owner.namespace": namespace, "olm.owner.kind": "ClusterServiceVersion"}
		if from != "" {
			l["olm.copiedFrom"] = from
		}
		return l
	}
	for name, tc := range map[string]struct {
		reason  string
		labels  map[string]string
		foreign bool
	}{
		"Copied":       {"it is a copied role of the version", labels("kettle.v1", "pantry", home), false},
		"Uncopied":     {"it is no copy, although it names the version", labels("kettle.v1", home, ""), true},
		"Own":          {"it belongs to a version of the namespace", labels("kettle.v1", "pantry", ""), true},
		"FromAnother":  {"it is copied from another namespace", labels("kettle.v1", "pantry", "garden"), true},
		"OtherVersion": {"it is copied for another version", labels("kettle.v2", "pantry", home), true},
		"Unlabelled":   {"it has no owner", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "pantry", Name: "kettle", Labels: tc.labels}}
			w := writerOf(t, fake.NewClientBuilder().WithScheme(scheme).WithObjects(role).Build())
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("Role"))
			u.SetNamespace(role.Namespace)
			u.SetName(role.Name)
			_, err := w.readRBAC(t.Context(), u, copyTemplate{key: types.NamespacedName{Namespace: home, Name: "kettle.v1"}})
			if errors.Is(err, errOtherOwner) != tc.foreign || err != nil && !tc.foreign {
				t.Errorf("%s: error %v", tc.reason, err)
			}
		})
	}
}
