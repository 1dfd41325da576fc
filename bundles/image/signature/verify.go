package signature

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/chandlery/chandlery/bundles/image"
)

// signPredicate is the type of statements that are signatures of images.
const signPredicate = "https://sigstore.dev/cosign/sign/v1"

// Reasons why a signature is not accepted.
var (
	errFormat      = errors.New("its format is not supported")
	errOtherImage  = errors.New("it is the signature of another image")
	errAttestation = errors.New("it is an attestation, not a signature")
	errNoSigner    = errors.New("no key or identity of the rule has signed it")
)

// signed is a signature with what it signs.
type signed struct {
	bundle *bundle.Bundle
	// artifact returns the policy for what is signed.
	artifact func() verify.ArtifactPolicyOption
}

// Verify returns nil if the rule accepts a signature for the image with a digest. Otherwise, it returns why not.
func (r *Rule) Verify(s *image.Signature, digest string) (err error) {
	// A tenant may control a registry. Foreign input must not end the program, whatever a library does with it.
	defer func() {
		if failed := recover(); failed != nil {
			err = fmt.Errorf("%w: %v", errFormat, failed)
		}
	}()
	one, err := parse(s, digest)
	if err != nil {
		return err
	}
	var problems []string
	for _, k := range r.keys {
		problem := r.verifyKey(one, k)
		if problem == nil {
			return nil
		}
		problems = append(problems, fmt.Sprintf("key %s: %v", k.name, problem))
	}
	if len(r.identities) > 0 {
		problem := r.verifyIdentities(one)
		if problem == nil {
			return nil
		}
		problems = append(problems, problem.Error())
	}
	return fmt.Errorf("%w: %s", errNoSigner, strings.Join(problems, "; "))
}

// parse decodes a signature and checks which image it names.
func parse(s *image.Signature, digest string) (*signed, error) {
	if s.Bundle == nil {
		return parseSimple(s, digest)
	}
	one := &bundle.Bundle{}
	if err := one.UnmarshalJSON(s.Bundle); err != nil {
		return nil, fmt.Errorf("%w: %w", errFormat, err)
	}
	sum, err := hex.DecodeString(strings.TrimPrefix(digest, "sha256:"))
	if err != nil {
		return nil, fmt.Errorf("%w: digest %s", errFormat, digest)
	}
	return &signed{bundle: one, artifact: func() verify.ArtifactPolicyOption { return verify.WithArtifactDigest("sha256", sum) }}, nil
}

// verifyKey returns why a key has not signed; nil if it has.
func (r *Rule) verifyKey(s *signed, k *key) error {
	options := []verify.VerifierOption{verify.WithNoObserverTimestamps()}
	if r.log {
		options = []verify.VerifierOption{verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1)}
	}
	var problem error
	for _, verifier := range k.verifiers {
		trusted := root.TrustedMaterialCollection{material(verifier)}
		if r.log {
			trusted = append(trusted, r.root)
		}
		if problem = s.check(trusted, options, verify.WithKey()); problem == nil {
			return nil
		}
	}
	return problem
}

// verifyIdentities returns why none of the identities has signed; nil if one has.
func (r *Rule) verifyIdentities(s *signed) error {
	options := []verify.VerifierOption{verify.WithObserverTimestamps(1)}
	if r.log {
		options = append(options, verify.WithTransparencyLog(1))
	}
	if len(r.root.CTLogs()) > 0 {
		options = append(options, verify.WithSignedCertificateTimestamps(1))
	}
	signers := make([]verify.PolicyOption, len(r.identities))
	for i := range r.identities {
		signers[i] = verify.WithCertificateIdentity(r.identities[i].matcher)
	}
	problem := s.check(r.root, options, signers...)
	if end := endOf(r.root.FulcioCertificateAuthorities()); problem != nil && !end.IsZero() && end.Before(time.Now()) {
		return fmt.Errorf("the trusted root expired on %s: %w", end.UTC().Format(time.DateOnly), problem)
	}
	return problem
}

// endOf returns the time at which the last of the authorities expires; zero if one has no end or is of another type.
func endOf(authorities []root.CertificateAuthority) time.Time {
	var last time.Time
	for _, authority := range authorities {
		fulcio, ok := authority.(*root.FulcioCertificateAuthority)
		if !ok || fulcio.Root == nil {
			return time.Time{}
		}
		end := fulcio.Root.NotAfter
		if until := fulcio.ValidityPeriodEnd; !until.IsZero() && until.Before(end) {
			end = until
		}
		if end.After(last) {
			last = end
		}
	}
	return last
}

// check returns why a signature is not valid; nil if it is.
func (s *signed) check(trusted root.TrustedMaterial, options []verify.VerifierOption, signers ...verify.PolicyOption) error {
	verifier, err := verify.NewVerifier(trusted, options...)
	if err != nil {
		return err //nolint:wrapcheck // the caller names the signer
	}
	result, err := verifier.Verify(s.bundle, verify.NewPolicy(s.artifact(), signers...))
	if err != nil {
		return err //nolint:wrapcheck // the caller names the signer
	}
	if result.Statement != nil && result.Statement.GetPredicateType() != signPredicate {
		return fmt.Errorf("%w: %s", errAttestation, result.Statement.GetPredicateType())
	}
	return nil
}

// reader returns the policy for a signed text.
func reader(text []byte) func() verify.ArtifactPolicyOption {
	return func() verify.ArtifactPolicyOption { return verify.WithArtifact(bytes.NewReader(text)) }
}
