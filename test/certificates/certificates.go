// Package certificates makes authorities and certificates for tests.
package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	// PEM is the certificate of the authority.
	PEM []byte

	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Request describes a certificate. The zero value is for 127.0.0.1, from an hour ago to an hour from now.
type Request struct {
	// Hosts are DNS names and IP addresses.
	Hosts []string
	// NotBefore and NotAfter limit its validity.
	NotBefore, NotAfter time.Time
	// Usage is the only usage, if it is set. By default, the certificate is for servers and clients.
	Usage x509.ExtKeyUsage
}

// Pair is a certificate and its key, in PEM form.
type Pair struct{ Certificate, Key []byte }

// NewAuthority returns a new authority.
func NewAuthority(tb testing.TB, name string) *Authority {
	tb.Helper()
	template := template(Request{})
	template.Subject = pkix.Name{CommonName: name}
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage, template.ExtKeyUsage = true, true, x509.KeyUsageCertSign, nil
	a := &Authority{key: newKey(tb)}
	a.certificate = sign(tb, template, template, &a.key.PublicKey, a.key)
	a.PEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
	return a
}

// Pool returns a pool of the authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// Sign returns a new certificate.
func (a *Authority) Sign(tb testing.TB, r Request) Pair {
	tb.Helper()
	template := template(r)
	template.Subject = pkix.Name{CommonName: "test"}
	hosts := r.Hosts
	if hosts == nil {
		hosts = []string{"127.0.0.1"}
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	key := newKey(tb)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	return Pair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: sign(tb, template, a.certificate, &key.PublicKey, a.key).Raw}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
	}
}

// TLS returns the pair for a configuration.
func (p Pair) TLS(tb testing.TB) tls.Certificate {
	tb.Helper()
	pair, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		tb.Fatal(err)
	}
	return pair
}

// Server returns the configuration of a server with the pair.
func (p Pair) Server(tb testing.TB) *tls.Config {
	tb.Helper()
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{p.TLS(tb)}, NextProtos: []string{"h2"}}
}

func template(r Request) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62)) // rand.Reader does not fail
	t := &x509.Certificate{
		SerialNumber: serial, NotBefore: r.NotBefore, NotAfter: r.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if t.NotBefore.IsZero() {
		t.NotBefore = time.Now().Add(-time.Hour)
	}
	if t.NotAfter.IsZero() {
		t.NotAfter = time.Now().Add(time.Hour)
	}
	if r.Usage != x509.ExtKeyUsageAny {
		t.ExtKeyUsage = []x509.ExtKeyUsage{r.Usage}
	}
	return t
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func sign(tb testing.TB, template, parent *x509.Certificate, public *ecdsa.PublicKey, key *ecdsa.PrivateKey) *x509.Certificate {
	tb.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		tb.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	return certificate
}
