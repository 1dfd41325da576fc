package signing

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"google.golang.org/protobuf/encoding/protojson"
)

// Sigstore is an instance of Sigstore: a certificate authority, a transparency log and a timestamping authority.
type Sigstore struct{ virtual *ca.VirtualSigstore }

// NewSigstore returns a new instance.
func NewSigstore() (*Sigstore, error) {
	virtual, err := ca.NewVirtualSigstore()
	if err != nil {
		return nil, fmt.Errorf("making an instance of Sigstore: %w", err)
	}
	return &Sigstore{virtual}, nil
}

// TrustedRoot returns the file trusted_root.json of the instance. Its certificates have no timestamps of a log.
func (s *Sigstore) TrustedRoot() ([]byte, error) {
	logs := s.virtual.RekorLogs()
	for id, log := range logs {
		// The instance has the text of the ID here.
		raw, err := hex.DecodeString(id)
		if err != nil {
			return nil, fmt.Errorf("making a trusted root: %w", err)
		}
		log.ID = raw
	}
	trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01, s.virtual.FulcioCertificateAuthorities(), nil,
		s.virtual.TimestampingAuthorities(), logs)
	if err != nil {
		return nil, fmt.Errorf("making a trusted root: %w", err)
	}
	text, err := trusted.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding a trusted root: %w", err)
	}
	return text, nil
}

// Bundle returns a signature of cosign 3 by an identity for the image with a digest.
func (s *Sigstore) Bundle(identity, issuer, digest string) ([]byte, error) {
	entity, err := s.virtual.Attest(identity, issuer, Statement(digest, SignPredicate))
	if err != nil {
		return nil, fmt.Errorf("signing as %s: %w", identity, err)
	}
	content, err := entity.SignatureContent()
	if err != nil {
		return nil, fmt.Errorf("signing as %s: %w", identity, err)
	}
	envelope := content.EnvelopeContent().RawEnvelope()
	payload, err := base64.StdEncoding.DecodeString(envelope.Payload)
	if err != nil {
		return nil, fmt.Errorf("signing as %s: %w", identity, err)
	}
	material, err := s.materialOf(entity)
	if err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(&protobundle.Bundle{
		// This version needs no proof that the log has the entry.
		MediaType: "application/vnd.dev.sigstore.bundle+json;version=0.1", VerificationMaterial: material,
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			Payload: payload, PayloadType: envelope.PayloadType, Signatures: []*protodsse.Signature{{Sig: content.Signature()}},
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding a bundle: %w", err)
	}
	return text, nil
}

// materialOf returns what verifies a signature.
func (s *Sigstore) materialOf(entity *ca.TestEntity) (*protobundle.VerificationMaterial, error) {
	leaf, entries, err := s.partsOf(entity)
	if err != nil {
		return nil, err
	}
	return &protobundle.VerificationMaterial{
		Content: &protobundle.VerificationMaterial_X509CertificateChain{X509CertificateChain: &protocommon.X509CertificateChain{
			Certificates: []*protocommon.X509Certificate{{RawBytes: leaf.Raw}},
		}},
		TlogEntries: entries,
	}, nil
}

// partsOf returns the certificate of a signature, and its entries of the log.
func (s *Sigstore) partsOf(entity *ca.TestEntity) (*x509.Certificate, []*protorekor.TransparencyLogEntry, error) {
	verification, err := entity.VerificationContent()
	if err != nil {
		return nil, nil, fmt.Errorf("reading a signature: %w", err)
	}
	logged, err := entity.TlogEntries()
	if err != nil {
		return nil, nil, fmt.Errorf("reading a signature: %w", err)
	}
	var entries []*protorekor.TransparencyLogEntry
	for _, one := range logged {
		entry := one.TransparencyLogEntry()
		if err := s.promise(entry); err != nil {
			return nil, nil, err
		}
		entries = append(entries, entry)
	}
	return verification.Certificate(), entries, nil
}

// promise adds the kind of an entry, and the promise of the log to include it.
func (s *Sigstore) promise(entry *protorekor.TransparencyLogEntry) error {
	var kind struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
	}
	if err := json.Unmarshal(entry.GetCanonicalizedBody(), &kind); err != nil {
		return fmt.Errorf("reading the entry of a log: %w", err)
	}
	raw, err := s.virtual.RekorSignPayload(tlog.RekorPayload{
		Body: base64.StdEncoding.EncodeToString(entry.GetCanonicalizedBody()), IntegratedTime: entry.GetIntegratedTime(),
		LogIndex: entry.GetLogIndex(), LogID: hex.EncodeToString(entry.GetLogId().GetKeyId()),
	})
	if err != nil {
		return fmt.Errorf("promising to include an entry: %w", err)
	}
	entry.KindVersion = &protorekor.KindVersion{Kind: kind.Kind, Version: kind.APIVersion}
	entry.InclusionPromise = &protorekor.InclusionPromise{SignedEntryTimestamp: raw}
	return nil
}

// Simple returns a signature of cosign 2 by an identity for the image with a digest.
func (s *Sigstore) Simple(identity, issuer, repository, digest string) (*Simple, error) {
	payload := SimplePayload(repository, digest)
	entity, err := s.virtual.SignWithVersion(identity, issuer, payload, "v0.1")
	if err != nil {
		return nil, fmt.Errorf("signing as %s: %w", identity, err)
	}
	content, err := entity.SignatureContent()
	if err != nil {
		return nil, fmt.Errorf("signing as %s: %w", identity, err)
	}
	leaf, entries, err := s.partsOf(entity)
	if err != nil {
		return nil, err
	}
	entry := entries[0]
	log, err := json.Marshal(map[string]any{
		"SignedEntryTimestamp": entry.GetInclusionPromise().GetSignedEntryTimestamp(),
		"Payload": map[string]any{
			"body": entry.GetCanonicalizedBody(), "integratedTime": entry.GetIntegratedTime(),
			"logIndex": entry.GetLogIndex(), "logID": hex.EncodeToString(entry.GetLogId().GetKeyId()),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the entry of a log: %w", err)
	}
	return &Simple{payload, map[string]string{
		"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(content.Signature()),
		"dev.sigstore.cosign/certificate":    string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw})),
		"dev.sigstore.cosign/bundle":         string(log),
	}}, nil
}
