package signature_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/signature"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/test/signing"
)

const (
	digest     = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	other      = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	repository = "quay.io/acme/lamp"
	issuer     = "https://token.test"
	builder    = "builder@acme.test"
)

// signers are who sign in these tests.
type signers struct {
	*testing.T

	acme, stranger     *signing.Key
	instance, foreign  *signing.Sigstore
	acmePEM, otherPEM  []byte
	trusted, untrusted []byte
	// expired is trusted with authorities that are valid until 2 January 2020.
	expired []byte
}

func newSigners(t *testing.T) *signers {
	t.Helper()
	s := &signers{T: t}
	s.acme, s.stranger = must(signing.NewKey())(t), must(signing.NewKey())(t)
	s.instance, s.foreign = must(signing.NewSigstore())(t), must(signing.NewSigstore())(t)
	s.acmePEM, s.otherPEM = must(s.acme.PEM())(t), must(s.stranger.PEM())(t)
	s.trusted, s.untrusted = must(s.instance.TrustedRoot())(t), must(s.foreign.TrustedRoot())(t)
	s.expired = expire(t, s.trusted)
	return s
}

// expire returns a trusted root whose authorities are valid until 2 January 2020.
func expire(t *testing.T, trusted []byte) []byte {
	t.Helper()
	var content map[string]any
	if err := json.Unmarshal(trusted, &content); err != nil {
		t.Fatal(err)
	}
	authorities := content["certificateAuthorities"].([]any)
	for _, authority := range authorities {
		authority.(map[string]any)["validFor"] = map[string]any{"start": "2019-01-01T00:00:00Z", "end": "2020-01-02T00:00:00Z"}
	}
	return must(json.Marshal(content))(t)
}

// must returns a value, or ends the test.
func must[V any](value V, err error) func(testing.TB) V {
	return func(tb testing.TB) V {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return value
	}
}

// rule returns the rule with some lines.
func (s *signers) rule(lines string) *signature.Rule {
	s.Helper()
	policy, err := signature.Parse("test", map[string][]byte{
		sources.KeyVerification: []byte("rules:\n- prefix: quay.io/acme\n" + lines),
		"acme.pub":              s.acmePEM, "stranger.pub": s.otherPEM, "both.pub": bytes.Join([][]byte{s.otherPEM, s.acmePEM}, []byte("\n")),
		"root.json": s.trusted, "foreign.json": s.untrusted, "expired.json": s.expired,
	})
	if err != nil {
		s.Fatal(err)
	}
	return policy.For(must(name.ParseReference(repository))(s), signature.Bundles)
}

func ofBundle(text []byte) *image.Signature { return &image.Signature{Place: "x", Bundle: text} }

func ofSimple(s *signing.Simple) *image.Signature {
	return &image.Signature{Place: "x", Payload: s.Payload, Annotations: s.Annotations}
}

// TestVerify offers signatures in both formats to rules.
func TestVerify(t *testing.T) {
	s := newSigners(t)
	const (
		byKey      = "  keys: [acme.pub]"
		byIdentity = "  identities: [{issuer: 'https://token.test', subject: builder@acme.test}]\n  trustedRoot: root.json"
	)
	edited := func(format string, in []byte, from, to string) []byte {
		if !bytes.Contains(in, []byte(from)) {
			t.Fatalf("%s has no %q", format, from)
		}
		return bytes.ReplaceAll(in, []byte(from), []byte(to))
	}
	simple := must(s.acme.Simple(repository, digest))(t)
	logless := must(s.instance.Simple(builder, issuer, repository, digest))(t)
	delete(logless.Annotations, "dev.sigstore.cosign/bundle")
	bundle := must(s.acme.Bundle(digest))(t)
	for reason, tt := range map[string]struct {
		rule      string
		signature *image.Signature
		// want is part of the reason why it is not accepted; empty if it is.
		want string
	}{
		"cosign 3 with the key":                  {rule: byKey, signature: ofBundle(bundle)},
		"cosign 2 with the key":                  {rule: byKey, signature: ofSimple(simple)},
		"one of several keys":                    {rule: "  keys: [stranger.pub, acme.pub]", signature: ofBundle(bundle)},
		"one of several keys in one file":        {rule: "  keys: [both.pub]", signature: ofSimple(simple)},
		"a key or an identity":                   {rule: byKey + "\n" + byIdentity + "\n  transparencyLog: false", signature: ofBundle(bundle)},
		"cosign 3 with another key":              {rule: "  keys: [stranger.pub]", signature: ofBundle(bundle), want: "no key or identity of the rule has signed it: key stranger.pub"},
		"cosign 2 with another key":              {rule: "  keys: [stranger.pub]", signature: ofSimple(simple), want: "key stranger.pub"},
		"cosign 3 of another image":              {rule: byKey, signature: ofBundle(must(s.acme.Bundle(other))(t)), want: "digest"},
		"cosign 2 of another image":              {rule: byKey, signature: ofSimple(must(s.acme.Simple(repository, other))(t)), want: "it is the signature of another image, " + other},
		"an attestation":                         {rule: byKey, signature: ofBundle(must(s.acme.Attest(digest, "https://slsa.dev/provenance/v1"))(t)), want: "it is an attestation, not a signature: https://slsa.dev"},
		"a key without the log that is required": {rule: byKey + "\n  transparencyLog: true\n  trustedRoot: root.json", signature: ofBundle(bundle), want: "log"},
		"a key where an identity is required":    {rule: byIdentity, signature: ofBundle(bundle), want: "no key or identity"},
		"cosign 3 by the identity":               {rule: byIdentity, signature: ofBundle(must(s.instance.Bundle(builder, issuer, digest))(t))},
		"cosign 2 by the identity":               {rule: byIdentity, signature: ofSimple(must(s.instance.Simple(builder, issuer, repository, digest))(t))},
		"an identity that fits a pattern":        {rule: "  identities: [{issuerRegExp: '^https://token', subjectRegExp: '^builder@'}]\n  trustedRoot: root.json", signature: ofBundle(must(s.instance.Bundle(builder, issuer, digest))(t))},
		"cosign 3 by another identity":           {rule: byIdentity, signature: ofBundle(must(s.instance.Bundle("mallory@acme.test", issuer, digest))(t)), want: "mallory@acme.test"},
		"cosign 2 by another identity":           {rule: byIdentity, signature: ofSimple(must(s.instance.Simple("mallory@acme.test", issuer, repository, digest))(t)), want: "mallory@acme.test"},
		"another issuer":                         {rule: byIdentity, signature: ofBundle(must(s.instance.Bundle(builder, "https://other.test", digest))(t)), want: "https://other.test"},
		"an identity of another instance":        {rule: byIdentity, signature: ofBundle(must(s.foreign.Bundle(builder, issuer, digest))(t)), want: "no key or identity"},
		"an identity of an expired authority": {
			rule:      strings.Replace(byIdentity, "root.json", "expired.json", 1),
			signature: ofBundle(must(s.instance.Bundle(builder, issuer, digest))(t)), want: "the trusted root expired on 2020-01-02",
		},
		"an identity for another image":           {rule: byIdentity, signature: ofBundle(must(s.instance.Bundle(builder, issuer, other))(t)), want: "digest"},
		"an identity without an entry in the log": {rule: byIdentity, signature: ofSimple(logless), want: "log"},
		"an identity without any time":            {rule: byIdentity + "\n  transparencyLog: false", signature: ofSimple(logless), want: "timestamp"},
		"an identity where a key is required":     {rule: byKey, signature: ofBundle(must(s.instance.Bundle(builder, issuer, digest))(t)), want: "key acme.pub"},
		"no JSON":                                 {rule: byKey, signature: ofBundle([]byte("{")), want: "its format is not supported"},
		"a bundle of the future":                  {rule: byKey, signature: ofBundle(edited("bundle", bundle, "v0.3", "v0.9")), want: "its format is not supported"},
		"an empty bundle":                         {rule: byKey, signature: ofBundle([]byte("{}")), want: "its format is not supported"},
		"a text of another type": {
			rule: byKey, signature: &image.Signature{Payload: edited("payload", simple.Payload, "cosign container image signature", "atomic"), Annotations: simple.Annotations},
			want: `its text is of type "atomic"`,
		},
		"a changed text": {rule: byKey, signature: &image.Signature{Payload: edited("payload", simple.Payload, "acme", "acne"), Annotations: simple.Annotations}, want: "key acme.pub"},
		"no signature":   {rule: byKey, signature: &image.Signature{Payload: simple.Payload}, want: "has no signature"},
	} {
		err := s.rule(tt.rule).Verify(tt.signature, digest)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", reason, err, tt.want)
		}
	}
}

// FuzzVerify checks that no signature ends the program, and that none is accepted by chance.
func FuzzVerify(f *testing.F) {
	key := must(signing.NewKey())(f)
	f.Add(must(key.Bundle(digest))(f), "", false)
	simple := must(key.Simple(repository, digest))(f)
	f.Add(simple.Payload, simple.Annotations["dev.cosignproject.cosign/signature"], true)
	instance := must(signing.NewSigstore())(f)
	f.Add(must(instance.Bundle(builder, issuer, digest))(f), "", false)
	stranger := must(must(signing.NewKey())(f).PEM())(f)
	policy, err := signature.Parse("test", map[string][]byte{
		sources.KeyVerification: []byte("rules:\n- prefix: \"\"\n  keys: [a.pub]\n  identities: [{issuer: i, subject: s}]\n  trustedRoot: root.json"),
		"a.pub":                 stranger, "root.json": must(instance.TrustedRoot())(f),
	})
	if err != nil {
		f.Fatal(err)
	}
	rule := policy.For(must(name.ParseReference(repository))(f), signature.Bundles)
	f.Fuzz(func(t *testing.T, text []byte, raw string, simple bool) {
		offered := &image.Signature{Bundle: text}
		if simple {
			log := base64.StdEncoding.EncodeToString(text)
			entry, _ := json.Marshal(map[string]any{"Payload": map[string]any{"body": log, "logID": raw}})
			offered = &image.Signature{Payload: text, Annotations: map[string]string{
				"dev.cosignproject.cosign/signature": raw, "dev.sigstore.cosign/certificate": raw, "dev.sigstore.cosign/bundle": string(entry),
			}}
		}
		if rule.Verify(offered, digest) == nil {
			t.Error("a signature without a known key is accepted")
		}
	})
}
