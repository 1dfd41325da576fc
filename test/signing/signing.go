// Package signing signs images in tests, in the formats of cosign 2 and 3, with keys and with identities of an instance of
// Sigstore that a test makes.
package signing

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Types of what cosign stores in registries.
const (
	bundleType  = "application/vnd.dev.sigstore.bundle.v0.3+json"
	simpleType  = "application/vnd.dev.cosign.simplesigning.v1+json"
	payloadType = "application/vnd.in-toto+json"
	// SignPredicate is the type of statements that are signatures.
	SignPredicate = "https://sigstore.dev/cosign/sign/v1"
)

// Key is a key pair.
type Key struct{ private *ecdsa.PrivateKey }

// NewKey returns a new key pair.
func NewKey() (*Key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return &Key{private}, nil
}

// PEM returns the public key, as the file cosign.pub.
func (k *Key) PEM() ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(k.private.Public())
	if err != nil {
		return nil, fmt.Errorf("encoding a public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

// WritePolicy writes a policy to a directory: images with a prefix need a signature by the key.
func (k *Key) WritePolicy(dir, prefix string) error {
	public, err := k.PEM()
	if err != nil {
		return err
	}
	for file, text := range map[string]string{
		"acme.pub": string(public), "verification.yaml": fmt.Sprintf("rules:\n- prefix: %s\n  keys: [acme.pub]\n", prefix),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			return fmt.Errorf("writing a policy: %w", err)
		}
	}
	return nil
}

// Sign signs an image in a registry as cosign 3 does.
func (k *Key) Sign(ctx context.Context, image name.Digest) error {
	bundle, err := k.Bundle(image.DigestStr())
	if err != nil {
		return err
	}
	return AttachBundle(ctx, image, bundle)
}

// sign returns the signature of a text.
func (k *Key) sign(text []byte) ([]byte, error) {
	sum := sha256.Sum256(text)
	raw, err := k.private.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	return raw, nil
}

// Statement returns a statement about the image with a digest.
func Statement(digest, predicate string) []byte {
	return fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],"predicateType":%q,"predicate":{}}`,
		strings.TrimPrefix(digest, "sha256:"), predicate)
}

// Bundle returns a signature of cosign 3 for the image with a digest. It has no entry of a transparency log.
func (k *Key) Bundle(digest string) ([]byte, error) { return k.Attest(digest, SignPredicate) }

// Attest returns a bundle with a statement of some kind about the image with a digest.
func (k *Key) Attest(digest, predicate string) ([]byte, error) {
	statement := Statement(digest, predicate)
	raw, err := k.sign(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(statement), statement))
	if err != nil {
		return nil, err
	}
	return encode(map[string]any{
		"mediaType":            bundleType,
		"verificationMaterial": map[string]any{"publicKey": map[string]any{"hint": "a test"}},
		"dsseEnvelope": map[string]any{
			"payload": statement, "payloadType": payloadType, "signatures": []any{map[string]any{"sig": raw}},
		},
	})
}

// Simple is a signature of cosign 2.
type Simple struct {
	Payload     []byte
	Annotations map[string]string
}

// SimplePayload returns the text that cosign 2 signs for the image with a digest.
func SimplePayload(repository, digest string) []byte {
	const text = `{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q},` +
		`"type":"cosign container image signature"},"optional":null}`
	return fmt.Appendf(nil, text, repository, digest)
}

// Simple returns a signature of cosign 2 for the image with a digest.
func (k *Key) Simple(repository, digest string) (*Simple, error) {
	payload := SimplePayload(repository, digest)
	raw, err := k.sign(payload)
	if err != nil {
		return nil, err
	}
	return &Simple{payload, map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(raw)}}, nil
}

// AttachBundle stores a signature of cosign 3 in a registry: it refers to an image.
func AttachBundle(ctx context.Context, image name.Digest, bundle []byte, options ...remote.Option) error {
	hash, err := v1.NewHash(image.DigestStr())
	if err != nil {
		return fmt.Errorf("attaching a signature: %w", err)
	}
	subject := &v1.Descriptor{MediaType: types.OCIManifestSchema1, Digest: hash, Size: 1}
	m := v1.Manifest{ArtifactType: bundleType, Subject: subject}
	signature := signed{manifest: m, layers: []v1.Layer{static.NewLayer(bundle, bundleType)}}
	return signature.push(ctx, image.Context(), nil, options)
}

// AttachSimple stores signatures of cosign 2 in a registry, with the tag of an image.
func AttachSimple(ctx context.Context, image name.Digest, signatures []*Simple, options ...remote.Option) error {
	var signature signed
	for _, one := range signatures {
		signature.layers = append(signature.layers, static.NewLayer(one.Payload, simpleType))
		signature.annotations = append(signature.annotations, one.Annotations)
	}
	tag := image.Context().Tag(strings.Replace(image.DigestStr(), ":", "-", 1) + ".sig")
	return signature.push(ctx, image.Context(), tag, options)
}

// signed is a manifest with layers that are signatures.
type signed struct {
	manifest v1.Manifest
	layers   []v1.Layer
	// annotations are those of the layers; nil for none.
	annotations []map[string]string
}

// push stores the manifest with its layers; with its digest if it has no tag.
func (s *signed) push(ctx context.Context, repository name.Repository, to name.Reference, options []remote.Option) error {
	m := s.manifest
	options = append([]remote.Option{remote.WithContext(ctx)}, options...)
	config := static.NewLayer([]byte("{}"), "application/vnd.oci.empty.v1+json")
	m.SchemaVersion, m.MediaType = 2, types.OCIManifestSchema1
	for i, one := range append([]v1.Layer{config}, s.layers...) {
		if err := remote.WriteLayer(repository, one, options...); err != nil {
			return fmt.Errorf("pushing a signature: %w", err)
		}
		d, err := describe(one)
		if err != nil {
			return err
		}
		if i == 0 {
			m.Config = *d
			continue
		}
		if s.annotations != nil {
			d.Annotations = s.annotations[i-1]
		}
		m.Layers = append(m.Layers, *d)
	}
	text, err := encode(m)
	if err != nil {
		return err
	}
	if to == nil {
		sum := sha256.Sum256(text)
		to = repository.Digest(fmt.Sprintf("sha256:%x", sum))
	}
	if err := remote.Put(to, raw(text), options...); err != nil {
		return fmt.Errorf("pushing a signature: %w", err)
	}
	return nil
}

func describe(layer v1.Layer) (*v1.Descriptor, error) {
	digest, err := layer.Digest()
	if err != nil {
		return nil, fmt.Errorf("describing a layer: %w", err)
	}
	size, err := layer.Size()
	if err != nil {
		return nil, fmt.Errorf("describing a layer: %w", err)
	}
	kind, err := layer.MediaType()
	if err != nil {
		return nil, fmt.Errorf("describing a layer: %w", err)
	}
	return &v1.Descriptor{MediaType: kind, Digest: digest, Size: size}, nil
}

// raw is the text of a manifest.
type raw []byte

// RawManifest returns the text.
func (r raw) RawManifest() ([]byte, error) { return r, nil }

// MediaType returns the type of the manifest.
func (r raw) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

func encode(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	return text, nil
}
