package signature

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"

	"github.com/chandlery/chandlery/bundles/image"
)

// Annotations of signatures of cosign 2.
const (
	annotationSignature   = "dev.cosignproject.cosign/signature"
	annotationCertificate = "dev.sigstore.cosign/certificate"
	annotationLog         = "dev.sigstore.cosign/bundle"
	annotationTimestamp   = "dev.sigstore.cosign/rfc3161timestamp"
)

const (
	// simpleMediaType is the version of bundles whose log entries have a promise instead of a proof.
	simpleMediaType = "application/vnd.dev.sigstore.bundle+json;version=0.1"
	// simpleType is the type of signed texts of cosign.
	simpleType = "cosign container image signature"
)

// simpleText is the signed text of cosign 2. The repository in it is not compared: cosign 3 has none.
type simpleText struct {
	Critical struct {
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
}

// parseSimple returns a signature of cosign 2 as a bundle.
func parseSimple(s *image.Signature, digest string) (*signed, error) {
	var text simpleText
	if err := json.Unmarshal(s.Payload, &text); err != nil {
		return nil, fmt.Errorf("%w: %w", errFormat, err)
	}
	switch {
	case text.Critical.Type != simpleType:
		return nil, fmt.Errorf("%w: its text is of type %q", errFormat, text.Critical.Type)
	case text.Critical.Image.Digest != digest:
		return nil, fmt.Errorf("%w, %s", errOtherImage, text.Critical.Image.Digest)
	}
	raw, err := base64.StdEncoding.DecodeString(s.Annotations[annotationSignature])
	if err != nil || len(raw) == 0 {
		return nil, fmt.Errorf("%w: annotation %s has no signature", errFormat, annotationSignature)
	}
	material, err := simpleMaterial(s.Annotations)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(s.Payload)
	one, err := bundle.NewBundle(&protobundle.Bundle{
		MediaType: simpleMediaType, VerificationMaterial: material,
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum[:]}, Signature: raw,
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFormat, err)
	}
	return &signed{bundle: one, artifact: reader(s.Payload)}, nil
}

// simpleMaterial returns what verifies a signature of cosign 2: the certificate, the entry of the log and a timestamp.
func simpleMaterial(annotations map[string]string) (*protobundle.VerificationMaterial, error) {
	m := &protobundle.VerificationMaterial{Content: &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{}}}
	if text := annotations[annotationCertificate]; text != "" {
		block, _ := pem.Decode([]byte(text))
		if block == nil || block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%w: annotation %s has no certificate", errFormat, annotationCertificate)
		}
		m.Content = &protobundle.VerificationMaterial_X509CertificateChain{X509CertificateChain: &protocommon.X509CertificateChain{
			Certificates: []*protocommon.X509Certificate{{RawBytes: block.Bytes}},
		}}
	}
	if text := annotations[annotationLog]; text != "" {
		entry, err := logEntry([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("%w: annotation %s: %w", errFormat, annotationLog, err)
		}
		m.TlogEntries = []*protorekor.TransparencyLogEntry{entry}
	}
	if text := annotations[annotationTimestamp]; text != "" {
		var timestamp struct {
			SignedRFC3161Timestamp []byte `json:"SignedRFC3161Timestamp"` //nolint:tagliatelle // the format of cosign
		}
		if err := json.Unmarshal([]byte(text), &timestamp); err != nil {
			return nil, fmt.Errorf("%w: annotation %s: %w", errFormat, annotationTimestamp, err)
		}
		m.TimestampVerificationData = &protobundle.TimestampVerificationData{
			Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: timestamp.SignedRFC3161Timestamp}},
		}
	}
	return m, nil
}

// logEntry returns the entry of the transparency log in an annotation.
func logEntry(text []byte) (*protorekor.TransparencyLogEntry, error) {
	var entry struct {
		SignedEntryTimestamp []byte `json:"SignedEntryTimestamp"` //nolint:tagliatelle // the format of cosign
		Payload              struct {
			Body           []byte `json:"body"`
			IntegratedTime int64  `json:"integratedTime"`
			LogIndex       int64  `json:"logIndex"`
			LogID          string `json:"logID"`
		} `json:"Payload"` //nolint:tagliatelle // the format of cosign
	}
	if err := json.Unmarshal(text, &entry); err != nil {
		return nil, err //nolint:wrapcheck // the caller names the annotation
	}
	log, err := hex.DecodeString(entry.Payload.LogID)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the annotation
	}
	var kind struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
	}
	if err := json.Unmarshal(entry.Payload.Body, &kind); err != nil {
		return nil, err //nolint:wrapcheck // the caller names the annotation
	}
	return &protorekor.TransparencyLogEntry{
		LogIndex: entry.Payload.LogIndex, LogId: &protocommon.LogId{KeyId: log},
		KindVersion:       &protorekor.KindVersion{Kind: kind.Kind, Version: kind.APIVersion},
		IntegratedTime:    entry.Payload.IntegratedTime,
		InclusionPromise:  &protorekor.InclusionPromise{SignedEntryTimestamp: entry.SignedEntryTimestamp},
		CanonicalizedBody: entry.Payload.Body,
	}, nil
}
