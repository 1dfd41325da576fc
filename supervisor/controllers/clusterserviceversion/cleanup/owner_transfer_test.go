package cleanup

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// transferCase has a state of the next owner in the API server, and the result of a transfer to it.
type transferCase struct {
	reason    string
	live      *operatorsv1alpha1.ClusterServiceVersion
	unread    error  // of the next owner
	unwritten error  // of the transfer, after its write
	conflicts int    // of the write that takes the object back
	claimed   string // the namespace of the owner that labels the object before that
	replaced  bool   // another object has the name before that
	leaving   bool   // the object is being deleted
	want      string
	left      int64
	err       error
}

// clientOfOwner returns a client of a ClusterRole and its next owner that behaves as a case requires.
func clientOfOwner(t *testing.T, tc transferCase, role *rbacv1.ClusterRole) client.Client {
	t.Helper()
	objects := []client.Object{role}
	if tc.live != nil {
		objects = append(objects, tc.live.DeepCopy())
	}
	patches := 0
	return interceptor.NewClient(fake.NewClientBuilder().WithScheme(fixtures.Scheme(t)).WithObjects(objects...).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			isOwner := key.Namespace != ""
			if isOwner && tc.unread != nil {
				return tc.unread
			}
			if isOwner && tc.claimed != "" {
				claim := []byte(`{"metadata":{"labels":{"` + api.LabelOwnerNamespace + `":"` + tc.claimed + `"}}}`)
				if err := c.Patch(ctx, role.DeepCopy(), client.RawPatch(types.MergePatchType, claim)); err != nil {
					return err
				}
			}
			if isOwner && tc.replaced {
				other := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role.Name, UID: "other", Labels: maps.Clone(role.Labels)}}
				other.Labels[api.LabelOwnerNamespace] = key.Namespace
				delete(other.Labels, "operators.coreos.com/kettle.kitchen")
				if err := errors.Join(c.Delete(ctx, role.DeepCopy()), c.Create(ctx, other)); err != nil {
					return err
				}
			}
			return c.Get(ctx, key, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			patches++
			if patches > 1 && patches <= 1+tc.conflicts {
				return apierrors.NewConflict(schema.GroupResource{Resource: "clusterroles"}, o.GetName(), errors.New("changed"))
			}
			err := c.Patch(ctx, o, patch, opts...)
			if err == nil && patches == 1 {
				err = tc.unwritten
			}
			return err
		},
	})
}

// TestNextOwnerIsReadAgain transfers a ClusterRole to a version that the cache shows. The API server has
// another state of that version.
func TestNextOwnerIsReadAgain(t *testing.T) {
	const home, away = "operators.coreos.com/kettle.kitchen", "operators.coreos.com/kettle.east"
	roles := rbacv1.SchemeGroupVersion.WithKind("ClusterRole")
	cached := versionOf("kettle", "east", "kettle.v1", "kettle.east")
	cached.UID = "cached"
	recreated, leaving := cached.DeepCopy(), cached.DeepCopy()
	recreated.UID = "recreated"
	leaving.Finalizers, leaving.DeletionTimestamp = []string{api.FinalizerCleanup}, &metav1.Time{Time: noon()}
	failure := errors.New("not now")
	cases := map[string]transferCase{
		"Same":        {reason: "the version remains", live: cached, want: "east"},
		"Deleted":     {reason: "nothing would delete the object", want: "kitchen", left: 1},
		"Recreated":   {reason: "no plan of the new version applied the object", live: recreated, want: "kitchen", left: 1},
		"Leaving":     {reason: "its clean-up may have ended already", live: leaving, want: "kitchen", left: 1},
		"Conflicts":   {reason: "the object changes often", conflicts: 3, want: "kitchen", left: 1},
		"Claimed":     {reason: "another version owns the object by now", claimed: "north", want: "north"},
		"Replaced":    {reason: "the new version has made another object of the name", replaced: true, want: "east"},
		"Terminating": {reason: "an object that is being deleted is not for another version", live: cached, leaving: true, want: "kitchen", left: 1},
		"Unread":      {reason: "it is unknown whether the version remains", live: cached, unread: failure, want: "kitchen", err: failure},
		"Unanswered":  {reason: "the write may have succeeded nevertheless", live: cached, unwritten: failure, want: "kitchen", err: failure},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			csv := kettle()
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "kettle", UID: "role", Labels: ownership.Labels(csv)}}
			if tc.leaving {
				role.Finalizers, role.DeletionTimestamp = []string{"example.com/keep"}, &metav1.Time{Time: noon()}
			}
			csv.Labels = map[string]string{home: ""}
			role.Labels[home], role.Labels[away] = "", ""
			c := clientOfOwner(t, tc, role)
			r := New(Options{Client: c, Live: c})
			object := sharedObject{roles.GroupKind(), role.Name}
			up := &cleanup{csv: csv, now: noon(), remaining: func() (remainingOwners, error) {
				return remainingOwners{applied: map[sharedObject]versions.List{object: {cached}}}, nil
			}}
			left, err := r.deleteKind(t.Context(), up, labelledKind(roles, "clusterroles"))
			if !errors.Is(err, tc.err) || left.count != tc.left {
				t.Errorf("%s: %d objects left, error %v; want %d, %v", tc.reason, left.count, err, tc.left, tc.err)
			}
			want := map[string]string{
				api.LabelOwner: "kettle.v1", api.LabelOwnerNamespace: tc.want,
				api.LabelOwnerKind: operatorsv1alpha1.ClusterServiceVersionKind, away: "",
			}
			if tc.want == csv.Namespace {
				want[home] = ""
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(role), role); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, role.Labels); diff != "" {
				t.Errorf("%s: labels (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
