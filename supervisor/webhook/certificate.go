package webhook

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/chandlery/chandlery/supervisor/api"
)

const (
	// validity is the validity period of a certificate: two years, as in existing clusters.
	validity = 2 * 365 * 24 * time.Hour
	// renewal is how long before its expiry a certificate is replaced. The replacement takes minutes. The rest is a
	// reserve for an outage of the supervisor or the cluster.
	renewal = 30 * 24 * time.Hour
	// skew is the tolerance for a node's clock that is late.
	skew = time.Hour
	// organization is the organization of the subject.
	organization = "Chandlery"

	// Provided is the value of api.AnnotationCertificate on the Secret of a user.
	Provided = "provided"
	// Issued is its value on the Secret of a certificate that the supervisor requests from cert-manager.
	Issued = "issued"

	// keyCA is the key of the authority's certificate in existing clusters, although its name suggests a private key.
	// The authority's key is not stored: it signs once.
	keyCA         = "olmCAKey"
	keyProvidedCA = "ca.crt"
	keyPreviousCA = "previous.ca.crt"
	keyNextCA     = "next.ca.crt"
	keyNextCert   = "next.tls.crt"
	keyNextKey    = "next.tls.key"
)

// Certificate is the certificate of a Server.
//
// It is replaced in three steps that the Secret records, so that every caller knows the authority of each
// certificate that it meets. Next is the new certificate: its authority is added to Bundle before it is used.
// UseNext starts to use it. The old authority remains in Bundle for the pods that still use the old
// certificate. Settle removes the old authority when no such pods are left.
type Certificate struct {
	// CA is the certificate of the authority that signed Cert. CA, Cert and Key are PEM-encoded.
	CA, Cert, Key []byte
	// NotAfter is the end of its validity, and RotateAt the time of its replacement.
	NotAfter, RotateAt time.Time
	// PreviousCA is an authority whose certificates pods may still use.
	PreviousCA []byte
	// Next is the next certificate.
	Next *Certificate
	// Provided is true if a user or cert-manager manages the certificate.
	Provided bool
}

// Issue creates a certificate with a new authority.
func Issue(s Server, namespace string, now time.Time) (*Certificate, error) {
	ca, caKey, err := authority(s.ServiceName()+"."+namespace, now)
	if err != nil {
		return nil, fmt.Errorf("making an authority for Deployment %s/%s: %w", namespace, s.Deployment, err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key for Deployment %s/%s: %w", namespace, s.Deployment, err)
	}
	hosts := s.Hosts(namespace)
	template := &x509.Certificate{
		Subject:     pkix.Name{Organization: []string{organization}, CommonName: commonName(hosts[0])},
		DNSNames:    hosts,
		NotBefore:   now.Add(-skew),
		NotAfter:    ca.NotAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed, err := sign(template, ca, key.Public(), caKey)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate for Deployment %s/%s: %w", namespace, s.Deployment, err)
	}
	out := &Certificate{NotAfter: signed.NotAfter, RotateAt: signed.NotAfter.Add(-renewal)}
	if out.Key, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		return nil, fmt.Errorf("encoding the key of Deployment %s/%s: %w", namespace, s.Deployment, err)
	}
	if out.Cert, err = cert.EncodeCertificates(signed); err != nil {
		return nil, fmt.Errorf("encoding the certificate of Deployment %s/%s: %w", namespace, s.Deployment, err)
	}
	if out.CA, err = cert.EncodeCertificates(ca); err != nil {
		return nil, fmt.Errorf("encoding the authority of Deployment %s/%s: %w", namespace, s.Deployment, err)
	}
	return out, nil
}

func authority(name string, now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making its key: %w", err)
	}
	template := &x509.Certificate{
		// The time distinguishes an old and a new authority of the same name.
		Subject:   pkix.Name{Organization: []string{organization}, CommonName: commonName(name), SerialNumber: now.UTC().Format(time.RFC3339)},
		NotBefore: now.Add(-skew),
		NotAfter:  now.Add(validity),
		KeyUsage:  x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IsCA:      true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	ca, err := sign(template, template, key.Public(), key)
	return ca, key, err
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("creating a certificate: %w", err)
	}
	out, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate just made: %w", err)
	}
	return out, nil
}

// commonName cuts a name to the maximum length of the field. Clients use the alternative names.
func commonName(name string) string { return name[:min(len(name), 64)] }

// CAHash returns the hash of the authority for pod templates and Secrets.
func (c *Certificate) CAHash() string {
	sum := sha256.Sum256(c.CA)
	return hex.EncodeToString(sum[:])
}

// Bundle returns the authorities that callers must trust: the current one, the previous one while pods use it,
// and the next one.
func (c *Certificate) Bundle() []byte {
	parts := [][]byte{c.CA}
	if len(c.PreviousCA) > 0 && !bytes.Equal(c.PreviousCA, c.CA) {
		parts = append(parts, c.PreviousCA)
	}
	if c.Next != nil {
		parts = append(parts, c.Next.CA)
	}
	var out []byte
	for _, p := range parts {
		out = append(append(out, bytes.TrimSpace(p)...), '\n')
	}
	return out
}

// IssuedAt returns the time at which this or another manager issued the certificate: all have the same validity
// period.
func (c *Certificate) IssuedAt() time.Time { return c.NotAfter.Add(-validity) }

// Due reports whether the certificate must be replaced.
func (c *Certificate) Due(now time.Time) bool { return !c.Provided && !now.Before(c.RotateAt) }

// UseNext returns the certificate after Next has replaced it.
func (c *Certificate) UseNext() *Certificate {
	if c.Next == nil {
		return c
	}
	out := *c.Next
	out.PreviousCA = c.CA
	return &out
}

// DropPreviousCA returns the certificate after the last pod has stopped using the previous one.
func (c *Certificate) DropPreviousCA() *Certificate {
	out := *c
	out.PreviousCA = nil
	return &out
}

// Renew returns the certificate that s must have. This is have if it is valid, have with a successor if it is
// due, and a new one if it is unusable. A provided certificate is never renewed.
func Renew(have *Certificate, s Server, namespace string, now time.Time) (*Certificate, error) {
	switch {
	case have == nil:
		return Issue(s, namespace, now)
	case have.Provided:
		return have, nil
	case have.Problem(s, namespace, now) != "":
		made, err := Issue(s, namespace, now)
		if err != nil {
			return nil, err
		}
		// Pods may have loaded a valid certificate before this one was damaged.
		if _, err := cert.ParseCertsPEM(have.CA); err == nil {
			made.PreviousCA = have.CA
		}
		return made, nil
	case have.Next != nil && have.Next.Problem(s, namespace, now) == "":
		return have, nil
	case !have.Due(now):
		out := *have
		out.Next = nil
		return &out, nil
	}
	next, err := Issue(s, namespace, now)
	if err != nil {
		return nil, err
	}
	out := *have
	out.Next = next
	return &out, nil
}

// IsProvided reports whether a user or cert-manager manages the certificate in a Secret.
func IsProvided(secret metav1.Object) bool {
	return secret.GetAnnotations()[api.AnnotationCertificate] == Provided || IsIssued(secret)
}

// IsIssued reports whether cert-manager manages the certificate in a Secret at the request of the supervisor.
func IsIssued(secret metav1.Object) bool {
	return secret.GetAnnotations()[api.AnnotationCertificate] == Issued
}

// FromSecret reads a certificate that the function Secret, another lifecycle manager or a user wrote.
func FromSecret(secret *corev1.Secret) (*Certificate, error) {
	c := &Certificate{
		CA: secret.Data[keyCA], Cert: secret.Data[corev1.TLSCertKey], Key: secret.Data[corev1.TLSPrivateKeyKey],
		PreviousCA: secret.Data[keyPreviousCA],
		Provided:   IsProvided(secret),
	}
	if c.Provided {
		c.CA, c.PreviousCA = secret.Data[keyProvidedCA], nil
	}
	if err := c.readTimes(); err != nil {
		return nil, fmt.Errorf("reading the certificate in Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	if len(secret.Data[keyNextCert]) == 0 || c.Provided {
		return c, nil
	}
	next := &Certificate{CA: secret.Data[keyNextCA], Cert: secret.Data[keyNextCert], Key: secret.Data[keyNextKey]}
	// An unreadable one counts as missing and is recreated.
	if next.readTimes() == nil {
		c.Next = next
	}
	return c, nil
}

func (c *Certificate) readTimes() error {
	keys := []string{keyCA, corev1.TLSCertKey}
	if c.Provided {
		keys[0] = keyProvidedCA
	}
	for i, text := range [][]byte{c.CA, c.Cert} {
		parsed, err := cert.ParseCertsPEM(text)
		if err != nil {
			return fmt.Errorf("decoding data[%s]: %w", keys[i], err)
		}
		if end := parsed[0].NotAfter; c.NotAfter.IsZero() || end.Before(c.NotAfter) {
			c.NotAfter = end
		}
	}
	c.RotateAt = c.NotAfter.Add(-renewal)
	return nil
}

// Problem returns why the certificate is unusable for s; empty if it is valid. A certificate that is due is
// valid. It needs no name but the one by which the API server calls: provided certificates often have no other.
func (c *Certificate) Problem(s Server, namespace string, now time.Time) string {
	if _, err := tls.X509KeyPair(c.Cert, c.Key); err != nil {
		return fmt.Sprintf("certificate and key do not match: %v", err)
	}
	chain, err := cert.ParseCertsPEM(c.Cert)
	if err != nil {
		return fmt.Sprintf("the certificate cannot be read: %v", err)
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	if !roots.AppendCertsFromPEM(c.CA) {
		return "the certificate's authority cannot be read"
	}
	for _, other := range chain[1:] {
		between.AddCert(other)
	}
	host := s.Host(namespace)
	_, err = chain[0].Verify(x509.VerifyOptions{
		DNSName: host, Roots: roots, Intermediates: between, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	// The message names the required host and not those of the certificate: the reader knows the Service.
	if wrong := (x509.HostnameError{}); errors.As(err, &wrong) {
		return fmt.Sprintf("the certificate is not valid for %s, the name that the API server uses", host)
	}
	if err != nil {
		return fmt.Sprintf("the certificate is not valid: %v", StableError(err))
	}
	return ""
}

// Data returns the content of the Secret.
func (c *Certificate) Data() map[string][]byte {
	out := map[string][]byte{corev1.TLSCertKey: c.Cert, corev1.TLSPrivateKeyKey: c.Key, keyCA: c.CA}
	if len(c.PreviousCA) > 0 {
		out[keyPreviousCA] = c.PreviousCA
	}
	if c.Next != nil {
		out[keyNextCA], out[keyNextCert], out[keyNextKey] = c.Next.CA, c.Next.Cert, c.Next.Key
	}
	return out
}
