package bundleimage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/supervisor/imagepolicy"
	"github.com/chandlery/chandlery/test/signing"
)

// signedBed is a registry, and a policy that requires signatures of its images.
type signedBed struct {
	*bed

	key       *signing.Key
	policyDir string
	// public is the PEM text of the key.
	public string
}

func newSignedBed(t *testing.T) *signedBed {
	t.Helper()
	key, err := signing.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	s := &signedBed{bed: newBed(t), key: key, policyDir: t.TempDir()}
	public, err := key.PEM()
	if err != nil {
		t.Fatal(err)
	}
	s.public = string(public)
	return s
}

func (s *signedBed) write(file, text string) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.policyDir, file), []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
}

// require writes a policy with one rule for the registry.
func (s *signedBed) require(lines string) {
	s.Helper()
	s.write("acme.pub", s.public)
	s.write(sources.KeyVerification, "rules:\n- prefix: "+s.host()+"\n"+lines)
}

// sign signs an image.
func (s *signedBed) sign(reference, digest string) {
	s.Helper()
	ref, err := name.ParseReference(reference, name.Insecure)
	if err != nil {
		s.Fatal(err)
	}
	bundle, err := s.key.Bundle(digest)
	if err == nil {
		err = signing.AttachBundle(context.WithoutCancel(s.Context()), ref.Context().Digest(digest), bundle)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// content returns the error for a request.
func (s *signedBed) content(c *Cache, r Request) error {
	_, err := c.Content(s.Context(), r)
	return err //nolint:wrapcheck // the test looks at it
}

// TestUnsignedBundles checks that no layer of an image without the required signature is pulled, and that it is when the
// signature has come.
func TestUnsignedBundles(t *testing.T) {
	s := newSignedBed(t)
	s.require("  keys: [acme.pub]")
	c := s.started(func(o *Options) { o.Policies = imagepolicy.New(s.policyDir) })
	reference, digest := s.push("lamp:v1", s.bundle())
	s.forget()
	err := s.content(c, request(reference, "user"))
	if image.ReasonOf(err) != image.ReasonPolicyRefused || !strings.Contains(err.Error(), "verification.yaml, line 2) accepts key acme.pub") {
		t.Errorf("unsigned: %v", err)
	}
	if n := s.sent("/blobs/"); n != 0 {
		t.Errorf("%d requests for layers of a refused image", n)
	}
	state := s.await(c, request(reference, "user"), "the state of a refused image", failed)
	if state.Ready || state.RetryAt.IsZero() {
		t.Errorf("the state of a refused image: %+v", state)
	}
	s.sign(reference, digest)
	s.await(c, request(reference, "user"), "the next attempt after it has been signed", ready)
	if err := s.content(c, request(reference, "user")); err != nil {
		t.Errorf("signed: %v", err)
	}
}

// TestAPolicyForCachedContent checks content that is cached already, where the registry can be reached and where not.
func TestAPolicyForCachedContent(t *testing.T) {
	s := newSignedBed(t)
	policies := imagepolicy.New(s.policyDir)
	c := s.started(func(o *Options) { o.Policies = policies })
	reference, digest := s.push("lamp:v1", s.bundle())
	if err := s.content(c, request(reference, "user")); err != nil {
		t.Fatal(err)
	}
	s.require("  keys: [acme.pub]")
	policies.Check(t.Context())
	if err := s.content(c, request(reference, "user")); image.ReasonOf(err) != image.ReasonPolicyRefused {
		t.Errorf("content that was cached before the rule: %v", err)
	}
	s.sign(reference, digest)
	s.await(c, request(reference, "user"), "the next attempt after it has been signed", ready)

	s.answer(unavailable)
	again := s.started(func(o *Options) { o.Policies = imagepolicy.New(s.policyDir) })
	if err := s.content(again, request(reference, "user")); err != nil {
		t.Errorf("signed content after a restart, without the registry: %v", err)
	}
	s.require("  keys: [acme.pub, other.pub]")
	other, err := signing.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	public, err := other.PEM()
	if err != nil {
		t.Fatal(err)
	}
	s.write("other.pub", string(public))
	third := s.started(func(o *Options) { o.Policies = imagepolicy.New(s.policyDir) })
	err = s.content(third, request(reference, "user"))
	if image.ReasonOf(err) != image.ReasonUnreachable || !errors.Is(err, imagepolicy.ErrSignatureRequired) {
		t.Errorf("another rule, without the registry: %v", err)
	}
	s.write(sources.KeyVerification, "rules: {")
	fourth := s.started(func(o *Options) { o.Policies = imagepolicy.New(s.policyDir) })
	if err := s.content(fourth, request(reference, "user")); image.ReasonOf(err) != image.ReasonConfiguration {
		t.Errorf("a policy that has never been valid: %v", err)
	}
}

// TestThePolicyOfACatalog checks that the rules of a CatalogSource apply to its images alone.
func TestThePolicyOfACatalog(t *testing.T) {
	s := newSignedBed(t)
	c := s.started(func(o *Options) { o.Policies = imagepolicy.New("") })
	reference, _ := s.push("lamp:v1", s.bundle())
	s.reader.put(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "user", Name: "rules", ResourceVersion: "1"},
		Data:       map[string]string{sources.KeyVerification: "rules:\n- prefix: \"\"\n  require: reject"},
	})
	if err := s.content(c, request(reference, "user")); err != nil {
		t.Errorf("a catalog without rules: %v", err)
	}
	own := request(reference, "user")
	own.Policy = "rules"
	if err := s.content(c, own); image.ReasonOf(err) != image.ReasonPolicyRefused || !strings.Contains(err.Error(), "ConfigMap user/rules key verification.yaml, line 2") {
		t.Errorf("a catalog that allows nothing: %v", err)
	}
}
