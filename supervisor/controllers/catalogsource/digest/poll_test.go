package digest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// shop returns a CatalogSource with an image.
func shop() *operatorsv1alpha1.CatalogSource {
	source := &operatorsv1alpha1.CatalogSource{Spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Image: "shops/shop:1"}}
	source.Name, source.Namespace, source.UID = "shop", "olm", "u-1"
	return source
}

// polling returns a CatalogSource with a polling interval.
func polling(interval string) *operatorsv1alpha1.CatalogSource {
	source := shop()
	source.CreationTimestamp = metav1.NewTime(noon)
	text := []byte(`{"registryPoll":{"interval":"` + interval + `"}}`)
	source.Spec.UpdateStrategy = &operatorsv1alpha1.UpdateStrategy{}
	if err := source.Spec.UpdateStrategy.UnmarshalJSON(text); err != nil {
		panic(err)
	}
	return source
}

func TestPollInterval(t *testing.T) {
	const problem = "error parsing spec.updateStrategy.registryPoll.interval. Using the default value of 15m0s instead. Error: "
	for _, tt := range []struct {
		interval, problem string
		want              time.Duration
	}{
		{interval: "45m", want: 45 * time.Minute},
		{interval: "5s", want: 5 * time.Second},
		{interval: "4999ms", want: 5 * time.Second, problem: "spec.updateStrategy.registryPoll.interval is 4.999s, and 5s is used instead; set it to 5s or more"},
		{interval: "often", want: 15 * time.Minute, problem: problem + `time: invalid duration "often"`},
		{interval: "", want: 15 * time.Minute, problem: problem + `time: invalid duration ""`},
		{interval: "-5m", want: 15 * time.Minute, problem: problem + `"-5m" is not above zero`},
		{interval: "0s", want: 15 * time.Minute, problem: problem + `"0s" is not above zero`},
	} {
		got, found := PollInterval(polling(tt.interval))
		if got != tt.want || found != tt.problem {
			t.Errorf("interval %q: %s, %q", tt.interval, got, found)
		}
	}
	unset := polling("1m")
	unset.Spec.UpdateStrategy.Interval = nil
	if got, found := PollInterval(unset); got != 15*time.Minute || !strings.HasPrefix(found, "empty polling interval; ") {
		t.Errorf("without an interval: %s, %q", got, found)
	}
	if got, found := PollInterval(shop()); got != 0 || found != "" {
		t.Errorf("without polling: %s, %q", got, found)
	}
}

func TestIsDue(t *testing.T) {
	const minute = time.Minute
	known := &Image{Spec: "shops/shop:1", Digest: someDigest}
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * minute) }
	told := func(minutes int) *result { return &result{image: *known, time: at(minutes)} }
	changed := shop()
	changed.Generation = 2
	failed := &result{image: Image{Spec: known.Spec}, err: errors.New("away"), time: at(1)}
	refused := &result{image: Image{Spec: known.Spec}, err: errors.New("unsigned"), time: at(1), policy: "before"}
	for _, tt := range []struct {
		reason  string
		source  *operatorsv1alpha1.CatalogSource
		running *Image
		last    *result
		polled  int
		// unpulled is the minute since which a node has been unable to pull the running image; 0
		// for none.
		unpulled int
		now      int
		due      bool
	}{
		{reason: "nothing is known", source: shop(), due: true},
		{reason: "it runs", source: shop(), running: known},
		{reason: "it runs by its tag", source: shop(), running: &Image{Spec: known.Spec}, due: true},
		{reason: "another runs", source: shop(), running: &Image{Spec: "odd", Digest: someDigest}, due: true},
		{reason: "told", source: shop(), last: told(0), now: 1000},
		{reason: "polled, too early", source: polling("10m"), running: known, now: 9},
		{reason: "polled, due", source: polling("10m"), running: known, now: 12, due: true},
		{reason: "polled by another supervisor", source: polling("10m"), running: known, polled: 5, now: 12},
		{reason: "polled by this one", source: polling("10m"), running: known, last: told(5), now: 12},
		{reason: "polled again", source: polling("10m"), running: known, last: told(5), now: 17, due: true},
		{reason: "polled by a clock that is ahead", source: polling("10m"), running: known, last: told(5), polled: 1000, now: 17, due: true},
		{reason: "not pulled", source: shop(), running: known, unpulled: 10, now: 10, due: true},
		{reason: "not pulled, told before", source: shop(), running: known, last: told(5), unpulled: 10, now: 10, due: true},
		{reason: "not pulled, told since", source: shop(), running: known, last: told(12), unpulled: 10, now: 13},
		{reason: "not pulled, told since, again", source: shop(), running: known, last: told(12), unpulled: 10, now: 14, due: true},
		{reason: "not pulled for long", source: shop(), running: known, last: told(100), unpulled: 10, now: 105, due: true},
		{reason: "failed, too early", source: shop(), last: failed, now: 1},
		{reason: "failed, again", source: shop(), last: failed, now: 3, due: true},
		{reason: "failed, and the CatalogSource was changed", source: changed, last: failed, now: 1, due: true},
		{reason: "failed by another policy", source: shop(), last: refused, now: 1, due: true},
	} {
		if tt.polled > 0 {
			tt.source.Status.LatestImageRegistryPoll = &metav1.Time{Time: at(tt.polled)}
		}
		var unpulled time.Time
		if tt.unpulled > 0 {
			unpulled = at(tt.unpulled)
		}
		due, next := isDue(tt.source, tt.running, tt.last, times{now: at(tt.now), retry: at(2), unpulled: unpulled})
		if due != tt.due {
			t.Errorf("%s: due %v, next %s", tt.reason, due, next)
		}
		if !due && !next.IsZero() && !next.After(at(tt.now)) {
			t.Errorf("%s: next %s has passed", tt.reason, next)
		}
	}
	byDigest := polling("10m")
	byDigest.Spec.Image = "shop@" + someDigest
	if !nextPoll(byDigest, nil, noon).IsZero() {
		t.Error("an image by digest is polled")
	}
}

func TestPause(t *testing.T) {
	var got []time.Duration
	for _, failures := range []int{0, 1, 2, 3, 7, 100} {
		got = append(got, backoff.After(failures))
	}
	want := []time.Duration{0, 5 * time.Second, 10 * time.Second, 20 * time.Second, 5 * time.Minute, 5 * time.Minute}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
}

func TestImageDecision(t *testing.T) {
	resolved := Image{Spec: "shops/shop:1", Digest: someDigest}
	known := &result{image: resolved, time: noon}
	failed := &result{image: Image{Spec: "shops/shop:1"}, err: errors.New("away"), time: noon}
	of := func(image string) *operatorsv1alpha1.CatalogSource {
		source := shop()
		source.Spec.Image = image
		return source
	}
	for name, tt := range map[string]struct {
		reason  string
		request Request
		last    *result
		want    Decision
		wantErr string
	}{
		"Invalid": {reason: "no reference", request: Request{Source: of("A B")}, want: Decision{Invalid: true}, wantErr: `spec.image "A B" names no image`},
		"Digest": {
			reason: "no query is needed", request: Request{Source: of("shop@" + someDigest)},
			want: Decision{Image: Image{Spec: "shop@" + someDigest}, Ready: true},
		},
		"Unknown": {reason: "the registry has not answered", request: Request{Source: shop()}, want: Decision{Image: Image{Spec: "shops/shop:1"}}},
		"Running": {reason: "it runs after a restart", request: Request{Source: shop(), Running: &resolved}, want: Decision{Image: resolved, Ready: true}},
		"Label": {
			reason: "the running image was resolved without its label", request: Request{Source: shop(), Running: &resolved, ReadLabel: true},
			want: Decision{Image: Image{Spec: "shops/shop:1"}},
		},
		"Resolved": {reason: "the registry answered", request: Request{Source: shop()}, last: known, want: Decision{Image: resolved, Ready: true, Polled: noon}},
		"Failed": {
			reason: "the nodes may know more", request: Request{Source: shop()}, last: failed,
			want:    Decision{Image: Image{Spec: "shops/shop:1"}, Ready: true, Polled: noon, Next: backoff.First},
			wantErr: "away; the image is run by its tag; check that the supervisor can reach the registry, and check spec.secrets",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewResolver(Options{Clock: clocktesting.NewFakePassiveClock(noon)})
			r.stopped = true // no query starts
			if tt.last != nil {
				r.entries[client.ObjectKeyFromObject(shop())] = &entry{last: tt.last, failures: 1}
			}
			got := r.Decide(t.Context(), &tt.request)
			if (got.Err != nil) != (tt.wantErr != "") || got.Err != nil && !strings.Contains(got.Err.Error(), tt.wantErr) {
				t.Errorf("%s: error %v, want %q", tt.reason, got.Err, tt.wantErr)
			}
			got.Err = nil
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}
