package subscription

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestWriteKeepsNoContent writes the status of a Subscription whose configuration is too large for
// the cache. The API server must not return the configuration: a namespace may have many such
// Subscriptions.
func TestWriteKeepsNoContent(t *testing.T) {
	scheme := fixtures.Scheme(t)
	live := subscription("my", "lamp")
	live.Spec.Config = &operatorsv1alpha1.SubscriptionConfig{Env: []corev1.EnvVar{{Name: "FILL", Value: strings.Repeat("x", 1<<20)}}}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(live).WithStatusSubresource(live).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, subResource string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if _, is := o.(*metav1.PartialObjectMetadata); !is {
				t.Errorf("the API server is asked to answer with a %T", o)
			}
			return c.SubResource(subResource).Patch(ctx, o, p, opts...)
		},
	}).Build()
	before := &operatorsv1alpha1.Subscription{}
	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(live), before); err != nil {
		t.Fatal(err)
	}
	before.Spec.Config = nil
	after, err := patchStatus(t.Context(), cluster, before, operatorsv1alpha1.SubscriptionStatus{State: operatorsv1alpha1.SubscriptionStateFailed}, metav1.Now())
	if err != nil {
		t.Fatal(err)
	}
	if after.Spec.Config != nil {
		t.Error("the configuration of the reply is kept")
	}
	if after.Status.State != operatorsv1alpha1.SubscriptionStateFailed || after.ResourceVersion == before.ResourceVersion {
		t.Errorf("state %q, version %q after %q", after.Status.State, after.ResourceVersion, before.ResourceVersion)
	}
	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	if live.ResourceVersion != after.ResourceVersion || live.Spec.Config == nil {
		t.Errorf("the object has version %q, want %q, with its configuration", live.ResourceVersion, after.ResourceVersion)
	}
}

// TestLabelPassesALateCache labels a Subscription that another client changed after the cache
// read it.
func TestLabelPassesALateCache(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*operatorsv1alpha1.Subscription)
		labels bool
		waits  bool
	}{
		"Current": {reason: "the cache has the newest version", labels: true},
		"Late":    {reason: "the label follows from the spec", change: func(s *operatorsv1alpha1.Subscription) { s.Annotations = map[string]string{"round": "1"} }, labels: true, waits: true},
		"Recorded": {reason: "applying the label alone would drop the log", change: func(s *operatorsv1alpha1.Subscription) {
			s.Annotations = map[string]string{api.AnnotationTransitions: "[]"}
		}, waits: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := fixtures.Scheme(t)
			cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(subscription("my", "lamp")).Build()
			key := client.ObjectKeyFromObject(subscription("my", "lamp"))
			cached := &operatorsv1alpha1.Subscription{}
			if err := cluster.Get(t.Context(), key, cached); err != nil {
				t.Fatal(err)
			}
			live := cached.DeepCopy()
			if tc.change != nil {
				tc.change(live)
				if err := cluster.Update(t.Context(), live); err != nil {
					t.Fatal(err)
				}
			}
			r := &recorder{client: cluster, live: cluster, clock: clocktesting.NewFakePassiveClock(time.Now())}
			err := r.label(t.Context(), cached)
			if (err != nil) != tc.waits || err != nil && !stale(err) {
				t.Errorf("%s: error %v, want one that says that the cache is late: %t", tc.reason, err, tc.waits)
			}
			if err := cluster.Get(t.Context(), key, live); err != nil {
				t.Fatal(err)
			}
			if labelled(live) != tc.labels {
				t.Errorf("%s: labelled %t, want %t", tc.reason, labelled(live), tc.labels)
			}
		})
	}
}

// TestWriteSome writes at least one of a list, and stops when its time is over.
func TestWriteSome(t *testing.T) {
	for name, tc := range map[string]struct {
		list, written, rest []int
		// after is how many are written in the time.
		after int
	}{
		"none":                  {},
		"all in time":           {list: []int{4, 2, 7}, written: []int{4, 2, 7}, after: 3},
		"some in time":          {list: []int{4, 2, 7}, written: []int{4, 2}, rest: []int{7}, after: 2},
		"one though it is late": {list: []int{4, 2, 7}, written: []int{4}, rest: []int{2, 7}},
	} {
		var written []int
		rest := writeSome(tc.list, func(i int) { written = append(written, i) }, func() bool { return len(written) < tc.after })
		if !slices.Equal(written, tc.written) || !slices.Equal(rest, tc.rest) {
			t.Errorf("%s: wrote %v and left %v, want %v and %v", name, written, rest, tc.written, tc.rest)
		}
	}
}
