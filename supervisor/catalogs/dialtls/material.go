package dialtls

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	"github.com/chandlery/chandlery/bundles/image/pemcerts"
)

const (
	// maxPEM is the maximum size of the text of certificates, in bytes. The list of the system has about half of it.
	maxPEM = 512 << 10
	// maxCertificates is the maximum number of authorities.
	maxCertificates = 1000
	// expiryNotice is how long before its expiry a client certificate is reported.
	expiryNotice = 7 * 24 * time.Hour
)

// Input is the text that Material is made of.
type Input struct {
	// CA is the PEM text of the authorities. It is not read with the authorities of the system.
	CA []byte
	// Certificate and Key are the PEM text of the client certificate with its chain, and of its key.
	Certificate, Key []byte
}

// Material is what a connection with TLS needs. It is immutable.
type Material struct {
	settings Settings
	roots    *x509.CertPool // nil for those of the system
	client   *tls.Certificate
	sum      [sha256.Size]byte
}

// NewMaterial returns the Material for settings. Text that is invalid in a part is refused as a whole.
func NewMaterial(settings Settings, in Input) (*Material, *Error) {
	m := &Material{settings: settings, sum: sumOf(settings, in)}
	if settings.CA != (Source{}) {
		var err error
		if m.roots, err = parseAuthorities(in.CA); err != nil {
			return nil, failf(CAInvalid, err, "%s: %v", settings.CA, err)
		}
	}
	if settings.ClientSecret == "" {
		return m, nil
	}
	if len(in.Certificate)+len(in.Key) > maxPEM {
		return nil, failf(ClientCertificateInvalid, nil, "Secret %s: it has more than %d bytes", settings.ClientSecret, maxPEM)
	}
	pair, err := tls.X509KeyPair(in.Certificate, in.Key)
	if err != nil {
		return nil, failf(ClientCertificateInvalid, err, "Secret %s: tls.crt and tls.key cannot be used: %v", settings.ClientSecret, err)
	}
	m.client = &pair
	return m, nil
}

// sumOf returns a hash that differs for other settings and for other text.
func sumOf(settings Settings, in Input) [sha256.Size]byte {
	hash := sha256.New()
	for _, part := range [][]byte{fmt.Append(nil, settings), in.CA, in.Certificate, in.Key} {
		_, _ = fmt.Fprintf(hash, "%d ", len(part))
		_, _ = hash.Write(part)
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// parseAuthorities returns the certificates of a PEM text. Text between the certificates is allowed.
func parseAuthorities(text []byte) (*x509.CertPool, error) {
	if len(text) > maxPEM {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(text), maxPEM) //nolint:err113 // text for users
	}
	all, err := pemcerts.Parse(text)
	if err != nil {
		return nil, err //nolint:wrapcheck // a sentence for users
	}
	if len(all) > maxCertificates {
		return nil, fmt.Errorf("it has more than %d certificates", maxCertificates) //nolint:err113 // text for users
	}
	pool := x509.NewCertPool()
	for _, certificate := range all {
		pool.AddCert(certificate)
	}
	return pool, nil
}

// Expiry returns the time at which the client certificate expires; zero if there is none.
func (m *Material) Expiry() time.Time {
	if m == nil || m.client == nil {
		return time.Time{}
	}
	return m.client.Leaf.NotAfter
}

// Warning returns a warning about a client certificate that has expired or expires soon; nil if there is none.
func (m *Material) Warning(now time.Time) *Error {
	switch end := m.Expiry(); {
	case end.IsZero(), now.Before(end.Add(-expiryNotice)):
		return nil
	case now.Before(end):
		return failf(ClientCertificateExpiring, nil, "the client certificate in Secret %s expires on %s", m.settings.ClientSecret, end.UTC().Format(day))
	default:
		return failf(ClientCertificateExpired, nil, "the client certificate in Secret %s has expired on %s", m.settings.ClientSecret, end.UTC().Format(day))
	}
}
