package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Signature is a signature of an image, as a registry stores it. It is not verified.
type Signature struct {
	// Place is the reference of the manifest that has the signature.
	Place string
	// Bundle is a Sigstore bundle in JSON, as of cosign 3; nil for a signature as of cosign 2.
	Bundle []byte
	// Payload is the signed text of a signature as of cosign 2. Annotations have the signature and what verifies it.
	Payload     []byte
	Annotations map[string]string
}

// Limits of the signatures of an image at one source.
const (
	maxSignatures     = 50
	maxSignatureBytes = 256 << 10
)

// signaturesTimeout bounds the search for an accepted signature at all sources.
const signaturesTimeout = time.Minute

const (
	// bundleTypePrefix is the start of the media types of Sigstore bundles.
	bundleTypePrefix = "application/vnd.dev.sigstore.bundle"
	// bundlePredicate is the annotation with the kind of a bundle's statement, and signPredicate that of signatures.
	bundlePredicate = "dev.sigstore.bundle.predicateType"
	signPredicate   = "https://sigstore.dev/cosign/sign/v1"
	// emptyType is the media type of empty configurations.
	emptyType = "application/vnd.oci.empty.v1+json"
	// simpleSigning is the media type of signed texts of cosign 2.
	simpleSigning = "application/vnd.dev.cosign.simplesigning.v1+json"
)

// FindSignature looks for a signature of the image with a digest that accept accepts, at one source after the other.
// accept returns why it refuses a signature. If it accepts none, the error is an [*Error] with [ReasonPolicyRefused].
func (c *Client) FindSignature(ctx context.Context, reference, digest string, accept func(*Signature) error) error {
	ref, err := c.parse(reference)
	if err != nil {
		return describe(reference, err)
	}
	if _, err := v1.NewHash(digest); err != nil {
		return describe(reference, fail(ReasonReference, "%q is no digest: %w", digest, err))
	}
	err = c.within(ctx, pin(ref, digest), signaturesTimeout, func(ctx context.Context, s *session) error {
		search := &signatureSearch{session: s, image: s.ref.Context().Digest(digest), accept: accept, left: maxSignatures}
		return search.run(ctx)
	})
	if e, ok := errors.AsType[*Error](err); ok {
		e.Reference = reference
	}
	return err
}

// signatureSearch looks for an accepted signature at one source.
type signatureSearch struct {
	*session

	image  name.Digest
	accept func(*Signature) error

	// left is the number of further signatures that are looked at. found of them were not accepted, for the reasons refused.
	left, found int
	refused     []string
}

// run looks at the referrers of the image, as cosign 3 writes them, and then at the tag of cosign 2.
func (f *signatureSearch) run(ctx context.Context) error {
	accepted, unread := f.referrers(ctx)
	if accepted {
		return nil
	}
	accepted, err := f.tagged(ctx)
	if accepted {
		return nil
	}
	if unread != nil {
		return unread
	}
	if err != nil {
		return err
	}
	if f.found == 0 {
		return fail(ReasonPolicyRefused, "it has no signature: neither a referrer nor tag %s in %s", f.tag().TagStr(), f.image.Context().Name())
	}
	return fail(ReasonPolicyRefused, "%w: %s", errNotAccepted, strings.Join(f.refused, "; "))
}

var (
	errNotAccepted   = errors.New("none of its signatures is accepted")
	errManyReferrers = fmt.Errorf("none of the first %d signatures is accepted", maxSignatures)
	errLongSignature = fmt.Errorf("is larger than %d bytes", maxSignatureBytes)
)

// tag returns the tag of cosign 2 for the signatures of the image.
func (f *signatureSearch) tag() name.Tag {
	return f.image.Context().Tag(strings.Replace(f.image.DigestStr(), ":", "-", 1) + ".sig")
}

// referrers reports whether a bundle that refers to the image is accepted.
func (f *signatureSearch) referrers(ctx context.Context) (bool, error) {
	var index *v1.IndexManifest
	err := f.retry(ctx, "asking for referrers of the image", func() error {
		found, err := remote.Referrers(f.image, append(slices.Clone(f.options), remote.WithContext(ctx))...)
		if err == nil {
			index, err = found.IndexManifest()
		}
		f.admitted = f.admitted || err == nil
		return err //nolint:wrapcheck // retry says what for
	})
	if err != nil {
		return false, ignoreMissing(err)
	}
	for i := range index.Manifests {
		d := &index.Manifests[i]
		if !isSignature(d) {
			continue
		}
		f.left--
		if f.left < 0 {
			return false, &failure{ReasonPolicyRefused, errManyReferrers}
		}
		place := f.image.Context().Digest(d.Digest.String())
		if accepted, err := f.bundle(ctx, place); accepted || err != nil {
			return accepted, err
		}
	}
	return false, nil
}

// isSignature reports whether a referrer can be a signature. Attestations have the same type. Some registries list the
// type of the configuration instead, which is empty.
func isSignature(d *v1.Descriptor) bool {
	if d.ArtifactType != "" && d.ArtifactType != emptyType && !strings.HasPrefix(d.ArtifactType, bundleTypePrefix) {
		return false
	}
	predicate := d.Annotations[bundlePredicate]
	return predicate == "" || predicate == signPredicate
}

// bundle reports whether the bundle in a manifest is accepted.
func (f *signatureSearch) bundle(ctx context.Context, place name.Digest) (bool, error) {
	m, err := f.signatureManifest(ctx, place)
	if err != nil || m == nil {
		return false, err
	}
	for i := range m.Layers {
		if !strings.HasPrefix(string(m.Layers[i].MediaType), bundleTypePrefix) {
			continue
		}
		data, err := f.content(ctx, &m.Layers[i])
		if err != nil {
			return false, f.unreadable(place.Name(), err)
		}
		return f.offer(&Signature{Place: place.Name(), Bundle: data}), nil
	}
	return false, nil
}

// tagged reports whether a signature of cosign 2 is accepted.
func (f *signatureSearch) tagged(ctx context.Context) (bool, error) {
	place := f.tag()
	m, err := f.signatureManifest(ctx, place)
	if err != nil || m == nil {
		return false, err
	}
	for i := range m.Layers {
		if string(m.Layers[i].MediaType) != simpleSigning {
			continue
		}
		f.left--
		if f.left < 0 {
			return false, &failure{ReasonPolicyRefused, errManyReferrers}
		}
		data, err := f.content(ctx, &m.Layers[i])
		if err != nil {
			if err := f.unreadable(place.Name(), err); err != nil {
				return false, err
			}
			continue
		}
		if f.offer(&Signature{Place: place.Name(), Payload: data, Annotations: m.Layers[i].Annotations}) {
			return true, nil
		}
	}
	return false, nil
}

// signatureManifest returns a manifest with signatures; nil if there is none.
func (f *signatureSearch) signatureManifest(ctx context.Context, place name.Reference) (*v1.Manifest, error) {
	found, err := f.fetchManifest(ctx, place)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	m := &v1.Manifest{}
	if err := json.Unmarshal(found.Manifest, m); err != nil {
		return nil, f.unreadable(place.Name(), fail(ReasonInvalid, "it cannot be decoded: %w", err))
	}
	return m, nil
}

// content returns the content of a layer.
func (f *signatureSearch) content(ctx context.Context, d *v1.Descriptor) ([]byte, error) {
	if d.Size < 0 || d.Size > maxSignatureBytes {
		return nil, &failure{ReasonTooLarge, errLongSignature}
	}
	var data []byte
	err := f.retry(ctx, "fetching a signature", func() error {
		blob, err := f.blob(ctx, f.image, d)
		if err != nil {
			return err
		}
		defer blob.Close() //nolint:errcheck // nothing was written
		data, err = io.ReadAll(io.LimitReader(blob, maxSignatureBytes+1))
		return err //nolint:wrapcheck // retry says what for
	})
	return data, err
}

// offer reports whether a signature is accepted.
func (f *signatureSearch) offer(s *Signature) bool {
	why := f.accept(s)
	if why != nil {
		f.refuse(s.Place, why)
	}
	return why == nil
}

// unreadable records a signature that has another format. It returns the other errors: they may pass.
func (f *signatureSearch) unreadable(place string, err error) error {
	switch classify(err) {
	case ReasonInvalid, ReasonTooLarge:
		f.refuse(place, err)
		return nil
	default:
		return err
	}
}

// maxRefused is the number of refused signatures that a message names.
const maxRefused = 3

// refuse records why a signature is not accepted.
func (f *signatureSearch) refuse(place string, why error) {
	f.found++
	switch {
	case f.found <= maxRefused:
		f.refused = append(f.refused, place+": "+clipTo(why.Error(), maxAnswer))
	case f.found == maxRefused+1:
		f.refused = append(f.refused, "…")
	}
}

// ignoreMissing returns nil for an answer that there is no such manifest, or that the registry has no such API.
func ignoreMissing(err error) error {
	answer, ok := errors.AsType[*transport.Error](err)
	if !ok {
		return err
	}
	switch answer.StatusCode {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented, http.StatusBadRequest:
		return nil
	default:
		return err
	}
}
