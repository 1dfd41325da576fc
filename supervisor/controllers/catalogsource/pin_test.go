package catalogsource

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/supervisor/api"
)

func TestReference(t *testing.T) {
	for _, tt := range []struct{ image, digest, want string }{
		{"shop", "", "shop"},
		{"shop", someDigest, "shop@" + someDigest},
		{"shop:1", someDigest, "shop@" + someDigest},
		{"host:5000/shop", someDigest, "host:5000/shop@" + someDigest},
		{"host:5000/a/shop:v1", someDigest, "host:5000/a/shop@" + someDigest},
		{"shop@" + someDigest, someDigest, "shop@" + someDigest},
	} {
		if got := (Pin{Image: tt.image, Digest: tt.digest}).Reference(); got != tt.want {
			t.Errorf("reference of %s, %s: %s, want %s", tt.image, tt.digest, got, tt.want)
		}
	}
}

func TestCheckImage(t *testing.T) {
	const remedy = "; write it as repository:tag or repository@sha256:<64 hex digits>"
	for _, tt := range []struct {
		image   string
		running *Pin
		want    string
	}{
		{image: "shop"},
		{image: "host:5000/s"},
		{image: "shops/shop:1@" + someDigest},
		{image: "Not An Image", want: `spec.image "Not An Image" names no image: invalid reference format: repository name (library/Not An Image) must be lowercase` + remedy},
		{image: "x@sha256:000", want: `spec.image "x@sha256:000" names no image: invalid reference format` + remedy},
		{
			image: "x@sha256:000", running: &Pin{Image: "shop:1", Digest: someDigest},
			want: `spec.image "x@sha256:000" names no image: invalid reference format; what runs, shop@` + someDigest + ", runs on" + remedy,
		},
	} {
		got := ""
		if err := checkImage(tt.image, tt.running); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.image, diff)
		}
	}
}

func TestChoose(t *testing.T) {
	const wanted = "shops/shop:2"
	refused := &image.Error{Reference: wanted, Reason: image.ReasonNotFound, Err: errors.New("gone")}
	away := &image.Error{Reference: wanted, Reason: image.ReasonUnreachable, Err: errors.New("away")}
	old := &Pin{Image: "shops/shop:1", Digest: someDigest}
	same := &Pin{Image: wanted, Digest: someDigest}
	byTag := &Pin{Image: wanted}
	answered := &Answer{Pin: Pin{Image: wanted, Digest: otherDigest}}
	fails := func(err error) *Answer { return &Answer{Pin: Pin{Image: wanted}, Err: err} }
	for _, tt := range []struct {
		reason  string
		running *Pin
		answer  *Answer
		want    Pin
		waits   bool
	}{
		{reason: "nothing runs and nothing is known", want: *byTag, waits: true},
		{reason: "nothing runs", answer: answered, want: answered.Pin},
		{reason: "nothing runs and it is not there", answer: fails(refused), want: *byTag},
		{reason: "nothing runs and nobody answers", answer: fails(away), want: *byTag},
		{reason: "another runs, until the registry has answered", running: old, want: *old},
		{reason: "another runs", running: old, answer: answered, want: answered.Pin},
		{reason: "another runs and it is not there", running: old, answer: fails(refused), want: *old},
		{reason: "another runs and nobody answers: the nodes may know more", running: old, answer: fails(away), want: *byTag},
		{reason: "it runs, after a restart", running: same, want: *same},
		{reason: "it runs and has changed", running: same, answer: answered, want: answered.Pin},
		{reason: "it runs and is gone", running: same, answer: fails(refused), want: *same},
		{reason: "it runs and nobody answers", running: same, answer: fails(away), want: *same},
		{reason: "it runs by its tag", running: byTag, want: *byTag},
		{reason: "it runs by its tag, and is told", running: byTag, answer: answered, want: answered.Pin},
		{reason: "the answer is of another image", answer: &Answer{Pin: *old}, want: *byTag, waits: true},
	} {
		got, ok := choose(wanted, tt.running, tt.answer)
		if got != tt.want || ok == tt.waits {
			t.Errorf("%s: %+v, %v", tt.reason, got, ok)
		}
	}
}

func TestConsequence(t *testing.T) {
	pin := Pin{Image: "shops/shop:1", Digest: someDigest}
	const runsOn, byTag = "what runs, shops/shop@" + someDigest + ", runs on; ", "the image is run by its tag; "
	for _, tt := range []struct {
		reason  image.Reason
		running *Pin
		want    string
	}{
		{reason: image.ReasonNotFound, want: "see that the registry has the image, and spec.secrets"},
		{reason: image.ReasonNotFound, running: &pin, want: runsOn + "see that the registry has the image, and spec.secrets"},
		{reason: image.ReasonUnreachable, want: byTag + "see that the supervisor reaches the registry, and spec.secrets"},
		{reason: image.ReasonUnreachable, running: &pin, want: runsOn + "see that the supervisor reaches the registry, and spec.secrets"},
		{reason: image.ReasonPlainHTTP, want: byTag + "serve the registry with TLS, or start the supervisor with --image-plain-http"},
		{reason: image.ReasonUntrusted, want: byTag + "have the registry show a certificate that the supervisor trusts, or start the supervisor with --image-skip-tls-verify"},
	} {
		answer := Answer{Err: &image.Error{Reference: pin.Image, Reason: tt.reason, Err: errors.New("it fails")}}
		if diff := cmp.Diff(tt.want, answer.consequence(pin, tt.running)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}

// polling returns a CatalogSource with a polling interval.
func polling(interval string) *operatorsv1alpha1.CatalogSource {
	source := observed().Source
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
		got, found := pollInterval(polling(tt.interval))
		if got != tt.want || found != tt.problem {
			t.Errorf("interval %q: %s, %q", tt.interval, got, found)
		}
	}
	if got, found := pollInterval(observed().Source); got != 0 || found != "" {
		t.Errorf("without polling: %s, %q", got, found)
	}
}

func TestQuestion(t *testing.T) {
	const minute = time.Minute
	known := &Pin{Image: "shops/shop:1", Digest: someDigest}
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * minute) }
	told := func(minutes int) *Answer { return &Answer{Pin: *known, Time: at(minutes)} }
	changed := observed().Source
	changed.Generation = 2
	failed := &Answer{Pin: Pin{Image: known.Image}, Err: errors.New("away"), Time: at(1)}
	for _, tt := range []struct {
		reason  string
		source  *operatorsv1alpha1.CatalogSource
		running *Pin
		answer  *Answer
		polled  int
		// unpulled is the minute since which a node has been unable to pull the running image; 0
		// for none.
		unpulled int
		now      int
		ask      bool
	}{
		{reason: "nothing is known", source: observed().Source, ask: true},
		{reason: "it runs", source: observed().Source, running: known},
		{reason: "it runs by its tag", source: observed().Source, running: &Pin{Image: known.Image}, ask: true},
		{reason: "another runs", source: observed().Source, running: &Pin{Image: "odd", Digest: someDigest}, ask: true},
		{reason: "told", source: observed().Source, answer: told(0), now: 1000},
		{reason: "polled, too early", source: polling("10m"), running: known, now: 9},
		{reason: "polled, due", source: polling("10m"), running: known, now: 12, ask: true},
		{reason: "polled by another supervisor", source: polling("10m"), running: known, polled: 5, now: 12},
		{reason: "polled by this one", source: polling("10m"), running: known, answer: told(5), now: 12},
		{reason: "polled again", source: polling("10m"), running: known, answer: told(5), now: 17, ask: true},
		{reason: "polled by a clock that is ahead", source: polling("10m"), running: known, answer: told(5), polled: 1000, now: 17, ask: true},
		{reason: "not pulled", source: observed().Source, running: known, unpulled: 10, now: 10, ask: true},
		{reason: "not pulled, told before", source: observed().Source, running: known, answer: told(5), unpulled: 10, now: 10, ask: true},
		{reason: "not pulled, told since", source: observed().Source, running: known, answer: told(12), unpulled: 10, now: 13},
		{reason: "not pulled, told since, again", source: observed().Source, running: known, answer: told(12), unpulled: 10, now: 14, ask: true},
		{reason: "not pulled for long", source: observed().Source, running: known, answer: told(100), unpulled: 10, now: 105, ask: true},
		{reason: "failed, too early", source: observed().Source, answer: failed, now: 1},
		{reason: "failed, again", source: observed().Source, answer: failed, now: 3, ask: true},
		{reason: "failed, and the CatalogSource was changed", source: changed, answer: failed, now: 1, ask: true},
	} {
		if tt.polled > 0 {
			tt.source.Status.LatestImageRegistryPoll = &metav1.Time{Time: at(tt.polled)}
		}
		var unpulled time.Time
		if tt.unpulled > 0 {
			unpulled = at(tt.unpulled)
		}
		ask, next := question(tt.source, tt.running, tt.answer, moments{now: at(tt.now), retry: at(2), unpulled: unpulled})
		if ask != tt.ask {
			t.Errorf("%s: asks %v, next %s", tt.reason, ask, next)
		}
		if !ask && !next.IsZero() && !next.After(at(tt.now)) {
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
		got = append(got, pause(failures))
	}
	want := []time.Duration{0, 5 * time.Second, 10 * time.Second, 20 * time.Second, 5 * time.Minute, 5 * time.Minute}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
}

func TestTemplate(t *testing.T) {
	version := Version{1, 36, 3}
	for template, want := range map[string]string{
		"shop:v{kube_major_version}.{kube_minor_version}": "shop:v1.36",
		"shop:{kube_patch_version}":                       "shop:3",
		"shop:1":                                          "shop:1",
		"shop:{odd}":                                      "",
		"":                                                "",
	} {
		source := observed(annotated(api.AnnotationCatalogImageTemplate, template)).Source
		if got := templateImage(source, version); got != want {
			t.Errorf("template %q: %q, want %q", template, got, want)
		}
		var conditions []metav1.Condition
		setTemplateConditions(&conditions, source, version, metav1.NewTime(noon))
		switch {
		case template == "" && len(conditions) != 0, template != "" && len(conditions) != 2:
			t.Errorf("template %q: conditions %+v", template, conditions)
		case len(conditions) == 2 && want == "" && !strings.Contains(conditions[0].Message, "cannot construct catalog image reference"):
			t.Errorf("template %q: %+v", template, conditions[0])
		}
		later := append([]metav1.Condition(nil), conditions...)
		setTemplateConditions(&later, source, version, metav1.NewTime(noon.Add(time.Hour)))
		if diff := cmp.Diff(conditions, later); diff != "" {
			t.Errorf("nothing happened and conditions changed:\n%s", diff)
		}
	}
}

func TestHash(t *testing.T) {
	one, err := hash(map[string]string{"a": "b"})
	if err != nil || one == "" || len(one) > 63 {
		t.Errorf("hash %q, error %v", one, err)
	}
	if _, err := hash(make(chan int)); err == nil {
		t.Error("hashed what cannot be encoded")
	}
}
