package cleanup

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// deletions records the names of objects that a client deletes. Deletions of the objects in fails
// fail.
type deletions struct {
	names []string
	fails map[string]error
}

func (d *deletions) delete(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
	if err := d.fails[o.GetName()]; err != nil {
		return err
	}
	d.names = append(d.names, o.GetName())
	return nil
}

// client returns a client with which only deletions and access reviews are possible.
func (d *deletions) client(review func(*authorizationv1.SelfSubjectAccessReview) error) client.Client {
	return interceptor.NewClient(nil, interceptor.Funcs{
		Delete: d.delete,
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			return review(o.(*authorizationv1.SelfSubjectAccessReview))
		},
	})
}

// cleanMugs runs a pass over custom resources with a client that acts for an account.
func cleanMugs(t *testing.T, c client.Client, mugs ...*metav1.PartialObjectMetadata) *resourcePass {
	t.Helper()
	p := &resourcePass{
		cleanup: &cleanup{csv: kettle(), now: noon()}, cleaner: New(Options{Client: c}).resources,
		deleter: resourceDeleter{client: c, actingAs: "as cook"}, forbiddenIn: sets.New[string](),
	}
	items := make([]metav1.PartialObjectMetadata, 0, len(mugs))
	for _, m := range mugs {
		items = append(items, *m)
	}
	if err := p.cleanPage(t.Context(), cupDefinition(apiextensionsv1.NamespaceScoped), items); err != nil {
		t.Error(err)
	}
	return p
}

// TestForbiddenDeletion has two custom resources in a namespace; the deletion of the first is
// forbidden.
func TestForbiddenDeletion(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "example.com", Resource: "cups"}, "first", errors.New("no"))
	const refused = `as cook: deleting Cup first: cups.example.com "first" is forbidden: no`
	cases := map[string]struct {
		reason  string
		allowed bool
		fails   error // the review
		deleted []string
		refused string
	}{
		"NoRight":    {"the account may delete nothing in the namespace", false, nil, nil, refused + "; grant it this permission"},
		"Admission":  {"admission refuses one object only", true, nil, []string{"second"}, refused},
		"Unanswered": {"a missing right is not proven", false, errors.New("not now"), []string{"second"}, refused},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := &deletions{fails: map[string]error{"first": forbidden}}
			p := cleanMugs(t, d.client(func(review *authorizationv1.SelfSubjectAccessReview) error {
				review.Status.Allowed = tc.allowed
				return tc.fails
			}), mug("first", 0), mug("second", 0))
			if diff := cmp.Diff(tc.deleted, d.names); diff != "" {
				t.Errorf("%s\ndeleted: -want, +got:\n%s", tc.reason, diff)
			}
			if p.refused != tc.refused {
				t.Errorf("%s\nrefused = %q, want %q", tc.reason, p.refused, tc.refused)
			}
		})
	}
}

// TestPassBoundsTerminatingResources has two custom resources to delete, after others that are
// terminating.
func TestPassBoundsTerminatingResources(t *testing.T) {
	const most = 50
	cases := map[string]struct {
		reason      string
		terminating int
		since       time.Duration
		deleted     []string
		exhausted   bool
	}{
		"Below":   {"both may be deleted", most - 2, time.Second, []string{"first", "second"}, false},
		"Reached": {"the first deletion reaches the bound", most - 1, time.Second, []string{"first"}, true},
		"At":      {"no more may be deleted", most, time.Second, nil, true},
		"Stuck":   {"stuck resources do not count", most, 2 * time.Minute, []string{"first", "second"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var mugs []*metav1.PartialObjectMetadata
			for i := range tc.terminating {
				mugs = append(mugs, mug(strconv.Itoa(i), tc.since, "example.com/drain"))
			}
			d := &deletions{}
			p := cleanMugs(t, d.client(nil), append(mugs, mug("first", 0), mug("second", 0))...)
			if diff := cmp.Diff(tc.deleted, d.names); diff != "" {
				t.Errorf("%s\ndeleted: -want, +got:\n%s", tc.reason, diff)
			}
			if p.limitReached != tc.exhausted {
				t.Errorf("%s\nlimitReached = %t, want %t", tc.reason, p.limitReached, tc.exhausted)
			}
		})
	}
}

// TestRemoveAllContinuesAfterAConflict has two objects; the deletion of the first fails.
func TestRemoveAllContinuesAfterAConflict(t *testing.T) {
	roles := schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}
	failed := errors.New("not now")
	cases := map[string]struct {
		reason  string
		fails   error
		deleted []string
		want    error
	}{
		"Conflict": {"another version may have taken the object over", apierrors.NewConflict(roles, "first", errors.New("changed")), []string{"second"}, nil},
		"Gone":     {"the object no longer exists", apierrors.NewNotFound(roles, "first"), []string{"second"}, nil},
		"Failed":   {"another error ends the pass", failed, nil, failed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := &deletions{fails: map[string]error{"first": tc.fails}}
			r := New(Options{Client: d.client(nil)})
			progressed, err := r.removeAll(t.Context(), []metav1.PartialObjectMetadata{*mug("first", 0), *mug("second", 0)})
			if !progressed || !errors.Is(err, tc.want) {
				t.Errorf("%s\nremoveAll(...) = %t, %v, want true, %v", tc.reason, progressed, err, tc.want)
			}
			if diff := cmp.Diff(tc.deleted, d.names); diff != "" {
				t.Errorf("%s\ndeleted: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
