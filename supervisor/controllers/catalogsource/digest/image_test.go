package digest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/bundles/image"
)

const (
	someDigest  = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	otherDigest = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
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
		if got := (Image{Spec: tt.image, Digest: tt.digest}).Reference(); got != tt.want {
			t.Errorf("reference of %s, %s: %s, want %s", tt.image, tt.digest, got, tt.want)
		}
	}
}

func TestCheckImage(t *testing.T) {
	const remedy = "; write it as repository:tag or repository@sha256:<64 hex digits>"
	for _, tt := range []struct {
		image   string
		running *Image
		want    string
	}{
		{image: "shop"},
		{image: "host:5000/s"},
		{image: "shops/shop:1@" + someDigest},
		{image: "Not An Image", want: `spec.image "Not An Image" names no image: invalid reference format: repository name (library/Not An Image) must be lowercase` + remedy},
		{image: "x@sha256:000", want: `spec.image "x@sha256:000" names no image: invalid reference format` + remedy},
		{
			image: "x@sha256:000", running: &Image{Spec: "shop:1", Digest: someDigest},
			want: `spec.image "x@sha256:000" names no image: invalid reference format; image shop@` + someDigest + " still runs" + remedy,
		},
	} {
		got := ""
		if err := checkSpec(tt.image, tt.running); err != nil {
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
	old := &Image{Spec: "shops/shop:1", Digest: someDigest}
	same := &Image{Spec: wanted, Digest: someDigest}
	byTag := &Image{Spec: wanted}
	labeled := &Image{Spec: wanted, CatalogDir: "/shops"}
	answered := &result{image: Image{Spec: wanted, Digest: otherDigest}}
	fails := func(err error) *result { return &result{image: Image{Spec: wanted}, err: err} }
	unsigned := &image.Error{Reference: wanted, Reason: image.ReasonPolicyRefused, Err: errors.New("unsigned")}
	guarded := func(err error) *result { return &result{image: Image{Spec: wanted}, err: err, guarded: true} }
	for _, tt := range []struct {
		reason  string
		running *Image
		last    *result
		want    Image
		waits   bool
	}{
		{reason: "nothing runs and nothing is known", want: *byTag, waits: true},
		{reason: "nothing runs", last: answered, want: answered.image},
		{reason: "nothing runs and it is not there", last: fails(refused), want: *byTag},
		{reason: "nothing runs and no registry answers", last: fails(away), want: *byTag},
		{reason: "another runs, until the registry has answered", running: old, want: *old},
		{reason: "another runs", running: old, last: answered, want: answered.image},
		{reason: "another runs and it is not there", running: old, last: fails(refused), want: *old},
		{reason: "another runs and no registry answers: the nodes may know more", running: old, last: fails(away), want: *byTag},
		{reason: "it runs, after a restart", running: same, want: *same},
		{reason: "it runs and has changed", running: same, last: answered, want: answered.image},
		{reason: "it runs and is gone", running: same, last: fails(refused), want: *same},
		{reason: "it runs and no registry answers", running: same, last: fails(away), want: *same},
		{reason: "it runs by its tag", running: byTag, want: *byTag},
		{reason: "it runs by its tag, and the registry answers", running: byTag, last: answered, want: answered.image},
		{reason: "it runs by its tag, and no registry answers: its label stays known", running: labeled, last: fails(away), want: *labeled},
		{reason: "nothing runs and the signature is refused", last: guarded(unsigned), want: *byTag, waits: true},
		{reason: "nothing runs and the signature cannot be read", last: guarded(away), want: *byTag, waits: true},
		{reason: "another runs and the signature is refused", running: old, last: guarded(unsigned), want: *old},
		{reason: "another runs and the signature cannot be read", running: old, last: guarded(away), want: *old},
		{reason: "it runs by its tag, and the signature is refused", running: byTag, last: guarded(unsigned), want: *byTag},
		{reason: "the answer is of another image", last: &result{image: *old}, want: *byTag, waits: true},
	} {
		got, ok := choose(wanted, tt.running, tt.last)
		if got != tt.want || ok == tt.waits {
			t.Errorf("%s: %+v, %v", tt.reason, got, ok)
		}
	}
}

func TestConsequence(t *testing.T) {
	chosen := Image{Spec: "shops/shop:1", Digest: someDigest}
	const runsOn, byTag = "image shops/shop@" + someDigest + " still runs; ", "the image is run by its tag; "
	const refused, nodesOnly = "check that the registry has the image, and check spec.secrets", "; if only nodes have access to it, write its digest in spec.image"
	for _, tt := range []struct {
		reason  image.Reason
		spec    string
		running *Image
		want    string
		guarded bool
	}{
		{reason: image.ReasonNotFound, want: refused + nodesOnly},
		{reason: image.ReasonUnauthorized, want: refused + nodesOnly},
		{reason: image.ReasonUnauthorized, spec: "shops/shop@" + someDigest, want: refused},
		{reason: image.ReasonNotFound, running: &chosen, want: runsOn + refused + nodesOnly},
		{reason: image.ReasonUnreachable, want: byTag + "check that the supervisor can reach the registry, and check spec.secrets"},
		{reason: image.ReasonUnreachable, running: &chosen, want: runsOn + "check that the supervisor can reach the registry, and check spec.secrets"},
		{reason: image.ReasonPlainHTTP, want: byTag + "serve the registry with TLS, or start the supervisor with --image-plain-http"},
		{reason: image.ReasonUntrusted, want: byTag + "add the CA of the registry to the supervisor's settings for image registries: key HOST or ca-bundle.crt, or --image-ca"},
		{reason: image.ReasonPolicyNotSupported, want: byTag + "write a rule with keys or identities for the image"},
		{reason: image.ReasonPolicyRefused, guarded: true, want: "it does not run before its signature is accepted; sign the image, or correct the rule for its signatures"},
		{reason: image.ReasonPolicyRefused, guarded: true, running: &chosen, want: runsOn + "sign the image, or correct the rule for its signatures"},
		{reason: image.ReasonUnreachable, guarded: true, want: "it does not run before its signature is accepted; check that the supervisor can reach the registry, and check spec.secrets"},
	} {
		spec := chosen.Spec
		if tt.spec != "" {
			spec = tt.spec
		}
		failed := result{image: Image{Spec: spec}, err: &image.Error{Reference: spec, Reason: tt.reason, Err: errors.New("it fails")}, guarded: tt.guarded}
		if diff := cmp.Diff(tt.want, failed.consequence(chosen, tt.running)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}
