package copiedcsv

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// found returns a version with an annotation of its target namespaces.
func found(namespace, targets string) *operatorsv1alpha1.ClusterServiceVersion {
	return &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "kettle.v1", Annotations: map[string]string{"olm.targetNamespaces": targets},
	}}
}

// copyOf returns a copy in one namespace of the version in another.
func copyOf(from, in string) *operatorsv1alpha1.ClusterServiceVersion {
	return &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{
		Namespace: in, Name: "kettle.v1", Labels: map[string]string{api.LabelCopiedFrom: from},
	}}
}

func watchedBy(t *testing.T, originals, copied []client.Object) mapper {
	t.Helper()
	scheme := fixtures.Scheme(t)
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	return mapper{
		reader: fake.NewClientBuilder().WithScheme(scheme).WithIndex(csv, indexServesOthers, byServesOthers).WithObjects(originals...).Build(),
		copies: fake.NewClientBuilder().WithScheme(scheme).WithIndex(csv, indexName, byName).WithObjects(copied...).Build(),
	}
}

// TestVersionEventsEnqueueCopiedVersions has the same operator in several namespaces. Only some versions
// are copied.
func TestVersionEventsEnqueueCopiedVersions(t *testing.T) {
	global, some := found("everywhere", ""), found("some", "some,b")
	cases := map[string]struct {
		reason string
		copies []client.Object
		send   func(mapper, queue)
		want   []string
	}{
		"OwnChanges": {
			"one that serves its own namespace has no copies", nil, func(m mapper, q queue) {
				m.versionEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: found("a", "a"), ObjectNew: found("a", "a")}, q)
			}, nil,
		},
		"OwnCreated": {
			"it is in the way of a copy of that name", nil, func(m mapper, q queue) {
				m.versionEvents().Create(t.Context(), event.CreateEvent{Object: found("b", "b")}, q)
			}, []string{"everywhere", "some"},
		},
		"OwnElsewhereDeleted": {
			"copies to that namespace may be created", nil, func(m mapper, q queue) {
				m.versionEvents().Delete(t.Context(), event.DeleteEvent{Object: found("c", "c")}, q)
			}, []string{"everywhere"},
		},
		"Narrowed": {
			"it was copied before", nil, func(m mapper, q queue) {
				m.versionEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: found("a", "a,b"), ObjectNew: found("a", "a")}, q)
			}, []string{"a"},
		},
		"LeftOvers": {
			"copies from before are to be deleted", []client.Object{copyOf("a", "b")}, func(m mapper, q queue) {
				m.versionEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: found("a", "a"), ObjectNew: found("a", "a")}, q)
			}, []string{"a"},
		},
		"CopyChanges": {
			"the copy is brought back to what it was made from", nil, func(m mapper, q queue) {
				meta := &metav1.PartialObjectMetadata{ObjectMeta: copyOf("some", "b").ObjectMeta}
				m.copyEvents().Update(t.Context(), event.TypedUpdateEvent[*metav1.PartialObjectMetadata]{ObjectOld: meta, ObjectNew: meta}, q)
			}, []string{"some"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			tc.send(watchedBy(t, []client.Object{global, some}, tc.copies), q)
			var got []string
			for q.Len() > 0 {
				request, _ := q.Get()
				got = append(got, request.Namespace)
				q.Done(request)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRolesOfVersionsThatAreCopied(t *testing.T) {
	role := func(owner string, from string) *rbacv1.Role {
		r := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
			"olm.owner": "kettle.v1", "olm.owner.namespace": owner, "olm.owner.kind": "ClusterServiceVersion",
		}}}
		if from != "" {
			r.Labels[api.LabelCopiedFrom] = from
		}
		return r
	}
	m := watchedBy(t, []client.Object{found("some", "some,b"), found("a", "a")}, nil)
	for name, tc := range map[string]struct {
		reason string
		role   *rbacv1.Role
		want   int
	}{
		"Copied":  {"the copies of its roles follow", role("some", ""), 1},
		"Own":     {"it has no copies", role("a", ""), 0},
		"Gone":    {"its version is gone, and its copies by labels of their own", role("gone", ""), 0},
		"OfACopy": {"a copied role is compared in any case", role("b", "a"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := m.owner(t.Context(), tc.role); len(got) != tc.want {
				t.Errorf("%s: woken %v, want %d", tc.reason, got, tc.want)
			}
		})
	}
}
