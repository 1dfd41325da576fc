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
	// validity is how long a certificate may be used: two years, as in existing
	// clusters.
	validity = 2 * 365 * 24 * time.Hour
	// renewal is how long before its end a certificate is replaced. It takes minutes;
	// the rest is for a supervisor or a cluster that is away for a while.
	renewal = 30 * 24 * time.Hour
	// skew is how much a node's clock may be behind ours.
	skew = time.Hour
	// organization is the subject's.
	organization = "Chandlery"

	// Provided is the value of api.AnnotationCertificate.
	Provided = "provided"

	// keyCA is where existing clusters have the authority's certificate, whatever the
	// name says. Its key is nowhere: it signs once.
	keyCA         = "olmCAKey"
	keyProvidedCA = "ca.crt"
	keyPreviousCA = "previous.ca.crt"
	keyNextCA     = "next.ca.crt"
	keyNextCert   = "next.tls.crt"
	keyNextKey    = "next.tls.key"
)

// Certificate is what a Server answers with, and by which it is recognized.
//
// It is replaced in three steps, each of which the Secret remembers, so that no
// caller ever meets a certificate whose authority it does not know: Next is made
// known (its authority is in Bundle) before it is used; Promote puts it to use while
// the old authority stays known, for the pods that still answer with what it signed;
// Settle forgets the old one when there are no such pods left.
type Certificate struct {
	// CA is the certificate of the authority that signed Cert. With Cert and Key it
	// is PEM-encoded.
	CA, Cert, Key []byte
	// NotAfter is the end of its validity, and RotateAt when it is to be replaced.
	NotAfter, RotateAt time.Time
	// PreviousCA is an authority that pods may still answer with.
	PreviousCA []byte
	// Next is the certificate to come.
	Next *Certificate
	// Provided says that somebody else looks after it.
	Provided bool
}

// Issue makes a certificate and an authority of its own for it.
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
		// Two authorities of one name, an old and a new one, are told apart by the time.
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

// commonName cuts a name to the length that the field may have; the names that count
// are the alternative ones.
func commonName(name string) string { return name[:min(len(name), 64)] }

// CAHash is the hash of the authority, as pod templates and Secrets carry it.
func (c *Certificate) CAHash() string {
	sum := sha256.Sum256(c.CA)
	return hex.EncodeToString(sum[:])
}

// Bundle is what callers are to believe: the authority, the one before while there are
// pods that use it, and the one to come.
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

// IssuedAt is when a certificate was made, ours or another manager's: all are valid for
// the same time.
func (c *Certificate) IssuedAt() time.Time { return c.NotAfter.Add(-validity) }

// Due says whether the certificate is to be replaced.
func (c *Certificate) Due(now time.Time) bool { return !c.Provided && !now.Before(c.RotateAt) }

// Promote is the certificate when Next has taken over.
func (c *Certificate) Promote() *Certificate {
	if c.Next == nil {
		return c
	}
	out := *c.Next
	out.PreviousCA = c.CA
	return &out
}

// Settle is the certificate when no pod uses the one before it any more.
func (c *Certificate) Settle() *Certificate {
	out := *c
	out.PreviousCA = nil
	return &out
}

// Renew is the certificate that s is to have: have if it is good, have with a
// successor if it is due, and a new one if it is of no use. One that somebody else
// provides is theirs to renew.
func Renew(have *Certificate, s Server, namespace string, now time.Time) (*Certificate, error) {
	switch {
	case have == nil:
		return Issue(s, namespace, now)
	case have.Provided:
		return have, nil
	case have.Trouble(s, namespace, now) != "":
		made, err := Issue(s, namespace, now)
		if err != nil {
			return nil, err
		}
		// Pods may have loaded a good one before this one was damaged.
		if _, err := cert.ParseCertsPEM(have.CA); err == nil {
			made.PreviousCA = have.CA
		}
		return made, nil
	case have.Next != nil && have.Next.Trouble(s, namespace, now) == "":
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

// IsProvided says whether somebody else looks after the certificate in a Secret.
func IsProvided(secret metav1.Object) bool {
	return secret.GetAnnotations()[api.AnnotationCertificate] == Provided
}

// FromSecret reads what Secret or another lifecycle manager wrote, or somebody
// provides.
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
	// One that cannot be read is as good as none, and made again.
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

// Trouble says why the certificate is of no use to s; empty when it is good. One that
// is due is good. It need be for no name but the one by which the API server calls: what
// others provide often is not.
func (c *Certificate) Trouble(s Server, namespace string, now time.Time) string {
	if _, err := tls.X509KeyPair(c.Cert, c.Key); err != nil {
		return fmt.Sprintf("certificate and key do not go together: %v", err)
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
	// The hosts that it is for are not told, but the one that it has to be for: the reader
	// knows which Service this is about.
	if wrong := (x509.HostnameError{}); errors.As(err, &wrong) {
		return fmt.Sprintf("the certificate is not for %s, by which the API server calls", host)
	}
	if err != nil {
		return fmt.Sprintf("the certificate is not valid: %v", Steady(err))
	}
	return ""
}

// data is what the Secret holds.
func (c *Certificate) data() map[string][]byte {
	out := map[string][]byte{corev1.TLSCertKey: c.Cert, corev1.TLSPrivateKeyKey: c.Key, keyCA: c.CA}
	if len(c.PreviousCA) > 0 {
		out[keyPreviousCA] = c.PreviousCA
	}
	if c.Next != nil {
		out[keyNextCA], out[keyNextCert], out[keyNextKey] = c.Next.CA, c.Next.Cert, c.Next.Key
	}
	return out
}
