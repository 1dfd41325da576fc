package imagepolicy_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/signature"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/supervisor/imagepolicy"
	"github.com/chandlery/chandlery/test/signing"
)

// bed is a registry with an image, and a directory with a policy.
type bed struct {
	*testing.T

	host, dir string
	image     name.Digest
	key       *signing.Key

	mu     sync.Mutex
	before func(http.ResponseWriter, *http.Request) bool
}

func newBed(t *testing.T, options ...registry.Option) *bed {
	t.Helper()
	b := &bed{T: t, dir: t.TempDir()}
	inner := registry.New(append(options, registry.Logger(log.New(io.Discard, "", 0)))...)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		before := b.before
		b.mu.Unlock()
		if before == nil || !before(w, r) {
			inner.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	b.host = strings.TrimPrefix(server.URL, "http://")
	b.image = b.push("team/lamp")
	var err error
	if b.key, err = signing.NewKey(); err != nil {
		t.Fatal(err)
	}
	b.write("acme.pub", string(must(b.key.PEM())(t)))
	b.policy("  keys: [acme.pub]")
	return b
}

// must returns a value, or ends the test.
func must[V any](value V, err error) func(*testing.T) V {
	return func(t *testing.T) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// push stores a new image in a repository.
func (b *bed) push(repository string) name.Digest {
	b.Helper()
	img := must(random.Image(64, 1))(b.T)
	digest := must(img.Digest())(b.T)
	ref := must(name.NewDigest(b.host+"/"+repository+"@"+digest.String(), name.Insecure))(b.T)
	if err := remote.Write(ref, img); err != nil {
		b.Fatal(err)
	}
	return ref
}

func (b *bed) write(file, text string) {
	b.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, file), []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}

// policy writes a policy with one rule for the registry.
func (b *bed) policy(lines string) {
	b.Helper()
	b.write(sources.KeyVerification, "rules:\n- prefix: "+b.host+"/team\n"+lines)
}

// answer sets a function that answers instead of the registry.
func (b *bed) answer(before func(http.ResponseWriter, *http.Request) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.before = before
}

// client returns a client that pulls by the rules of a registries.conf; empty for none.
func (b *bed) client(conf string) *image.Client {
	b.Helper()
	o := image.Options{PlainHTTP: true, Attempts: 1}
	if conf != "" {
		dir := b.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "registries.conf"), []byte(conf), 0o600); err != nil {
			b.Fatal(err)
		}
		o.Sources.Router = sources.NewFiles(sources.Paths{Config: dir})
	}
	return must(image.New(o))(b.T)
}

// check returns the answer for a bundle image.
func (b *bed) check(client *image.Client, reference name.Digest) error {
	b.Helper()
	rules, err := imagepolicy.New(b.dir).Rules(b.Context(), nil, imagepolicy.Query{Image: reference.Name(), Use: signature.Bundles})
	if err != nil {
		b.Fatal(err)
	}
	return rules.Check(b.Context(), client, reference.Name(), reference.DigestStr())
}

// refused fails the test unless the error is a refusal with a text.
func (b *bed) refused(reason string, err error, want ...string) {
	b.Helper()
	if image.ReasonOf(err) != image.ReasonPolicyRefused {
		b.Errorf("%s: %v, want a refusal", reason, err)
		return
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			b.Errorf("%s: %v, want %q", reason, err, text)
		}
	}
}

// TestSignaturesInARegistry signs images in both formats, where a registry lists referrers and where it does not.
func TestSignaturesInARegistry(t *testing.T) {
	for what, options := range map[string][]registry.Option{"Referrers": {registry.WithReferrersSupport(true)}, "FallbackTag": nil} {
		t.Run(what, func(t *testing.T) {
			b := newBed(t, options...)
			client := b.client("")
			unsigned := b.image
			b.refused("unsigned", b.check(client, unsigned), "it has no signature: neither a referrer nor tag sha256-",
				"the rule for prefix "+b.host+"/team (", "verification.yaml, line 2) accepts key acme.pub (SHA-256 ")

			stranger := must(signing.NewKey())(t)
			wrong := b.push("team/wrong")
			b.attach(wrong, must(stranger.Bundle(wrong.DigestStr()))(t))
			b.refused("by another key", b.check(client, wrong), "none of its signatures is accepted", "key acme.pub")

			moved := b.push("team/moved")
			b.attach(moved, must(b.key.Bundle(unsigned.DigestStr()))(t))
			b.refused("moved from another image", b.check(client, moved), "digest")

			attested := b.push("team/attested")
			b.attach(attested, must(b.key.Attest(attested.DigestStr(), "https://slsa.dev/provenance/v1"))(t))
			b.refused("attested only", b.check(client, attested), "it is an attestation")

			signed := b.push("team/signed")
			b.attach(signed, must(stranger.Bundle(signed.DigestStr()))(t))
			b.attach(signed, must(b.key.Bundle(signed.DigestStr()))(t))
			if err := b.check(client, signed); err != nil {
				t.Errorf("signed by two keys: %v", err)
			}

			simple := b.push("team/simple")
			b.attach(simple, must(stranger.Bundle(simple.DigestStr()))(t))
			b.attachSimple(simple, must(stranger.Simple("x", simple.DigestStr()))(t), must(b.key.Simple("x", simple.DigestStr()))(t))
			if err := b.check(client, simple); err != nil {
				t.Errorf("signed as of cosign 2: %v", err)
			}

			copied := b.push("team/copied")
			b.attachSimple(copied, must(b.key.Simple("x", simple.DigestStr()))(t))
			b.refused("a signature of cosign 2 of another image", b.check(client, copied), "it is the signature of another image, "+simple.DigestStr())
		})
	}
}

func (b *bed) attach(to name.Digest, bundle []byte) {
	b.Helper()
	if err := signing.AttachBundle(b.Context(), to, bundle); err != nil {
		b.Fatal(err)
	}
}

func (b *bed) attachSimple(to name.Digest, all ...*signing.Simple) {
	b.Helper()
	if err := signing.AttachSimple(b.Context(), to, all); err != nil {
		b.Fatal(err)
	}
}

// TestSignaturesOfMirrors has an image at a mirror, and its signature only at the source.
func TestSignaturesOfMirrors(t *testing.T) {
	b := newBed(t, registry.WithReferrersSupport(true))
	mirror := newBed(t)
	conf := fmt.Sprintf("[[registry]]\nprefix = %q\nlocation = %q\ninsecure = true\n[[registry.mirror]]\nlocation = %q\ninsecure = true\n",
		b.host+"/team", b.host+"/team", mirror.host+"/copies")
	b.attach(b.image, must(b.key.Bundle(b.image.DigestStr()))(t))
	if err := b.check(b.client(conf), b.image); err != nil {
		t.Errorf("a signature at the source only: %v", err)
	}
	b.answer(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusNotFound); return true })
	b.refused("no signature at either", b.check(b.client(conf), b.image), mirror.host+"/copies/lamp", b.host+"/team/lamp", "it has no signature")
	at := must(name.NewDigest(mirror.host+"/copies/lamp@"+b.image.DigestStr(), name.Insecure))(t)
	b.attachSimple(at, must(b.key.Simple("x", b.image.DigestStr()))(t))
	if err := b.check(b.client(conf), b.image); err != nil {
		t.Errorf("a signature at the mirror only: %v", err)
	}
}

// TestSignaturesAreBounded has registries with more, larger and other content than signatures.
func TestSignaturesAreBounded(t *testing.T) {
	b := newBed(t, registry.WithReferrersSupport(true))
	client := b.client("")
	large := b.push("team/large")
	b.attach(large, append(must(b.key.Bundle(large.DigestStr()))(t), make([]byte, 300<<10)...))
	b.refused("too large", b.check(client, large), "is larger than 262144 bytes")

	many := b.push("team/many")
	var all []*signing.Simple
	for range 51 {
		all = append(all, must(must(signing.NewKey())(t).Simple("x", many.DigestStr()))(t))
	}
	b.attachSimple(many, append(all, must(b.key.Simple("x", many.DigestStr()))(t))...)
	b.refused("too many", b.check(client, many), "none of the first 50 signatures is accepted")

	broken := b.push("team/broken")
	b.attach(broken, []byte("{"))
	b.refused("no bundle", b.check(client, broken), "its format is not supported")

	b.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/referrers/") {
			return false
		}
		w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
		_, _ = w.Write([]byte(`{"manifests":[{"size":1,"digest":"sha256:` + strings.Repeat("a", 64) + `"}],"annotations":{"x":"` + strings.Repeat("x", 5<<20) + `"}}`))
		return true
	})
	if err := b.check(client, many); image.ReasonOf(err) != image.ReasonTooLarge {
		t.Errorf("a long list of referrers: %v", err)
	}
}

// TestUnreadableSignatures checks that a registry that fails is no refusal, and that nodes do not pull the image instead.
func TestUnreadableSignatures(t *testing.T) {
	b := newBed(t)
	client := b.client("")
	b.attachSimple(b.image, must(b.key.Simple("x", b.image.DigestStr()))(t))
	for reason, tt := range map[string]struct {
		path   string
		status int
		want   image.Reason
	}{
		"referrers fail, and the tag has a signature": {path: "/referrers/", status: http.StatusInternalServerError},
		"referrers are not supported":                 {path: "/referrers/", status: http.StatusMethodNotAllowed},
		"the tag fails":                               {path: ".sig", status: http.StatusInternalServerError, want: image.ReasonUnreachable},
		"the tag is denied":                           {path: ".sig", status: http.StatusUnauthorized, want: image.ReasonUnauthorized},
		"blobs fail":                                  {path: "/blobs/", status: http.StatusInternalServerError, want: image.ReasonUnreachable},
	} {
		b.answer(func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, tt.path) {
				w.WriteHeader(tt.status)
			}
			return strings.Contains(r.URL.Path, tt.path)
		})
		err := b.check(client, b.image)
		if image.ReasonOf(err) != tt.want || tt.want != "" && !errors.Is(err, imagepolicy.ErrSignatureRequired) {
			t.Errorf("%s: %v, want reason %q", reason, err, tt.want)
		}
	}
}

// TestForbidden has rules that no signature meets.
func TestForbidden(t *testing.T) {
	b := newBed(t)
	for requirement, want := range map[string]image.Reason{
		"none": "", "reject": image.ReasonPolicyRefused, "node": image.ReasonPolicyNotSupported,
	} {
		b.policy("  require: " + requirement)
		if err := b.check(b.client(""), b.image); image.ReasonOf(err) != want || errors.Is(err, imagepolicy.ErrSignatureRequired) {
			t.Errorf("require: %s: %v, want reason %q", requirement, err, want)
		}
	}
	b.policy("  require: node")
	rules, err := imagepolicy.New(b.dir).Rules(b.Context(), nil, imagepolicy.Query{Image: b.image.Name(), Use: signature.Catalogs})
	if err != nil || rules.Any() {
		t.Errorf("a catalog that only nodes pull: %v, %v", rules, err)
	}
}
