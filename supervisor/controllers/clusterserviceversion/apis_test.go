package clusterserviceversion

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// requiring returns a version that requires PodMetrics of another operator and Deployments of the
// API server.
func requiring(current operatorsv1alpha1.ClusterServiceVersionPhase) *operatorsv1alpha1.ClusterServiceVersion {
	csv := good(current, "").CSV
	csv.Spec.NativeAPIs = []metav1.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "Deployment"}}
	csv.Spec.APIServiceDefinitions.Required = []operatorsv1alpha1.APIServiceDescription{{Group: "metrics.k8s.io", Version: "v1beta1", Kind: "PodMetrics"}}
	return csv
}

func metricsService(available string, since time.Time) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(webhook.APIServiceKind())
	u.SetName("v1beta1.metrics.k8s.io")
	u.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Available", "status": available, "reason": "MissingEndpoints", "message": "no pods",
		"lastTransitionTime": since.Format(time.RFC3339),
	}}}
	return u
}

func TestAPIRequirements(t *testing.T) {
	serves := map[string]*metav1.APIResourceList{
		"apps/v1":                {APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
		"metrics.k8s.io/v1beta1": {APIResources: []metav1.APIResource{{Name: "pods", Kind: "PodMetrics"}}},
	}
	only := func(gv string) map[string]*metav1.APIResourceList {
		return map[string]*metav1.APIResourceList{gv: serves[gv]}
	}
	notFound := apierrors.NewNotFound(schema.GroupResource{}, "")
	long := noon().Add(-time.Hour)
	type verdict = operatorsv1alpha1.StatusReason
	cases := map[string]struct {
		reason    string
		phase     operatorsv1alpha1.ClusterServiceVersionPhase
		service   *unstructured.Unstructured
		serves    map[string]*metav1.APIResourceList
		otherwise error
		want      []verdict // the API of another first
		disrupted bool
		err       bool
	}{
		"Served":        {"all is there", pending, metricsService("True", long), serves, notFound, []verdict{"Present", "Present"}, false, false},
		"NotRegistered": {"an API of the past does not count", pending, nil, serves, notFound, []verdict{"NotPresent", "Present"}, false, false},
		"Down":          {"it is there and does not answer", pending, metricsService("False", long), serves, notFound, []verdict{"PresentNotAvailable", "Present"}, false, false},
		"DownForLong":   {"what runs cannot do without for long", succeeded, metricsService("False", long), serves, notFound, []verdict{"PresentNotAvailable", "Present"}, false, false},
		"DownForNow": {
			"for a moment it can", succeeded, metricsService("False", noon().Add(-time.Second)), serves, notFound,
			[]verdict{"Present", "Present"},
			true, false,
		},
		"OtherKind": {
			"the group is there, the kind is not", pending, metricsService("True", long),
			map[string]*metav1.APIResourceList{"metrics.k8s.io/v1beta1": {APIResources: []metav1.APIResource{{Name: "x/pods", Kind: "PodMetrics"}}}},
			notFound,
			[]verdict{"NotPresent", "NotPresent"},
			false, false,
		},
		"SaysNothing": {
			"one server that does not answer keeps nothing else", pending, metricsService("True", long), only("apps/v1"),
			apierrors.NewServiceUnavailable("no"),
			[]verdict{"PresentNotAvailable", "Present"},
			false, false,
		},
		"Unreachable": {"without the API server nothing is known", succeeded, metricsService("True", long), nil, errors.New("connection refused"), nil, false, true},
		"Busy":        {"an API server that is busy is asked again", succeeded, metricsService("True", long), nil, apierrors.NewTooManyRequests("later", 1), nil, false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(noon())
			c := fake.NewClientBuilder().WithScheme(runtime.NewScheme())
			if tc.service != nil {
				c = c.WithObjects(tc.service)
			}
			o := &observer{live: c.Build(), discoveryCache: &discoveryCache{clock: clock, list: func(_ context.Context, gv string) (*metav1.APIResourceList, error) {
				if list := tc.serves[gv]; list != nil {
					return list, nil
				}
				return nil, tc.otherwise
			}}}
			found, disrupted, err := o.readAPIs(t.Context(), requiring(tc.phase), noon())
			if (err != nil) != tc.err || (disrupted != "") != tc.disrupted {
				t.Fatalf("%s: error %v, disrupted %q", tc.reason, err, disrupted)
			}
			if err != nil {
				return
			}
			var got []verdict
			for _, status := range requirements(requiring(tc.phase), cluster{APIs: found}).Statuses {
				got = append(got, status.Status)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUnlistedAPI checks when an installation waits for a kind that its API server does not list.
func TestUnlistedAPI(t *testing.T) {
	t.Parallel()
	const group = "hats.example"
	missing := "the server of APIService v1." + group + " does not list kind Hat, which spec.apiservicedefinitions.owned names"
	lists := func(name, kind string) func(context.Context, string) (*metav1.APIResourceList, error) {
		return func(context.Context, string) (*metav1.APIResourceList, error) {
			return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: name, Kind: kind}}}, nil
		}
	}
	fails := func(err error) func(context.Context, string) (*metav1.APIResourceList, error) {
		return func(context.Context, string) (*metav1.APIResourceList, error) { return nil, err }
	}
	cases := map[string]struct {
		phase   operatorsv1alpha1.ClusterServiceVersionPhase
		seen    phase.Webhooks
		list    func(context.Context, string) (*metav1.APIResourceList, error)
		want    string
		probing bool
		err     bool
	}{
		"Listed":        {phase: operatorsv1alpha1.CSVPhaseInstalling, list: lists("hats", "Hat")},
		"OtherKind":     {phase: operatorsv1alpha1.CSVPhaseInstalling, list: lists("caps", "Cap"), want: missing, probing: true},
		"Subresource":   {phase: operatorsv1alpha1.CSVPhaseInstalling, list: lists("hats/status", "Hat"), want: missing, probing: true},
		"NoAnswer":      {phase: operatorsv1alpha1.CSVPhaseInstalling, list: fails(apierrors.NewServiceUnavailable("no")), want: missing, probing: true},
		"NoAPIServer":   {phase: operatorsv1alpha1.CSVPhaseInstalling, list: fails(errors.New("connection refused")), err: true},
		"OtherProblem":  {phase: operatorsv1alpha1.CSVPhaseInstalling, seen: phase.Webhooks{Waiting: phase.Sentence{Text: "x", Detail: "y"}}, list: lists("caps", "Cap"), want: "y"},
		"Running":       {phase: operatorsv1alpha1.CSVPhaseSucceeded, list: lists("caps", "Cap")},
		"NotInstalling": {phase: operatorsv1alpha1.CSVPhasePending, list: lists("caps", "Cap")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			csv := &operatorsv1alpha1.ClusterServiceVersion{}
			csv.Status.Phase = tc.phase
			csv.Spec.APIServiceDefinitions.Owned = []operatorsv1alpha1.APIServiceDescription{{Name: "hats", Group: group, Version: "v1", Kind: "Hat"}}
			o := &observer{discoveryCache: &discoveryCache{clock: clocktesting.NewFakePassiveClock(noon()), list: tc.list}}
			got, err := o.addUnlistedAPI(t.Context(), csv, tc.seen)
			if (err != nil) != tc.err || got.Waiting.Detail != tc.want || got.Probing != tc.probing {
				t.Errorf("waiting %q, probing %t, error %v", got.Waiting.Detail, got.Probing, err)
			}
		})
	}
}

// TestDiscoveryGoesOutOfDate checks that a discovery answer is valid for a short time only.
func TestDiscoveryGoesOutOfDate(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon())
	asked, kind := 0, "Tea"
	d := &discoveryCache{clock: clock, list: func(context.Context, string) (*metav1.APIResourceList, error) {
		asked++
		return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "teas", Kind: kind}}}, nil
	}}
	tea := schema.GroupVersionKind{Group: "tea.example.com", Version: "v1", Kind: "Tea"}
	for range 3 {
		if got, err := d.find(t.Context(), tea); err != nil || !got.served || asked != 1 {
			t.Fatalf("%+v, error %v, asked %d times", got, err, asked)
		}
	}
	kind = "Coffee"
	clock.SetTime(noon().Add(discoveryAge))
	if got, err := d.find(t.Context(), tea); err != nil || got.served {
		t.Errorf("an API that is gone is served: %+v, error %v", got, err)
	}
}

// TestHasGroup checks that an unknown group does not count as an absent one.
func TestHasGroup(t *testing.T) {
	unanswered := errors.New("no answer")
	for name, tc := range map[string]struct {
		answer error
		want   bool
		err    error
	}{
		"Present":    {want: true},
		"Absent":     {answer: apierrors.NewNotFound(schema.GroupResource{}, "tea.example.com")},
		"Unanswered": {answer: unanswered, err: unanswered},
	} {
		d := &discoveryCache{group: func(context.Context, string) error { return tc.answer }}
		if got, err := d.hasGroup(t.Context(), "tea.example.com"); got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%s: hasGroup() = %t, %v, want %t, %v", name, got, err, tc.want, tc.err)
		}
	}
}
