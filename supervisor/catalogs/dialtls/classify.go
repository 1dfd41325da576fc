package dialtls

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"sync/atomic"
	"syscall"
	"time"
)

// alert is a TLS alert of a server, by its number in RFC 8446.
type alert uint8

// Alerts that mean something of their own.
const (
	alertHandshakeFailure      alert = 40
	alertBadCertificate        alert = 42
	alertUnsupportedCert       alert = 43
	alertCertificateRevoked    alert = 44
	alertCertificateExpired    alert = 45
	alertCertificateUnknown    alert = 46
	alertUnknownCA             alert = 48
	alertAccessDenied          alert = 49
	alertProtocolVersion       alert = 70
	alertInsufficientSecurity  alert = 71
	alertUnrecognizedName      alert = 112
	alertCertificateRequired   alert = 116
	alertNoApplicationProtocol alert = 120
)

// protocolHTTP2 is the name of HTTP/2 in the handshake.
const protocolHTTP2 = "h2"

// String returns the name of the alert.
func (a alert) String() string { return tls.AlertError(a).Error() }

// errNoHTTP2 is the error of a server that does not agree on HTTP/2.
var errNoHTTP2 = errors.New("the server does not offer HTTP/2")

// handshake is one attempt to secure a connection.
type handshake struct {
	material *Material
	host     string
	now      func() time.Time
	// requested is true if the server has requested a client certificate.
	requested atomic.Bool
}

func newHandshake(material *Material, authority string) *handshake {
	h := &handshake{material: material, host: material.settings.ServerName, now: time.Now}
	if h.host == "" {
		h.host = authority
		if host, _, err := net.SplitHostPort(authority); err == nil {
			h.host = host
		}
	}
	return h
}

// config returns the configuration of the attempt.
func (h *handshake) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: h.host, RootCAs: h.material.roots, NextProtos: []string{protocolHTTP2},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			h.requested.Store(true)
			if h.material.client == nil {
				return &tls.Certificate{}, nil
			}
			return h.material.client, nil
		},
		VerifyConnection: func(state tls.ConnectionState) error {
			if state.NegotiatedProtocol != protocolHTTP2 {
				return errNoHTTP2
			}
			return nil
		},
	}
}

// classify returns the failure of the handshake.
func (h *handshake) classify(err error) *Error {
	if failure := h.certificateFailure(err); failure != nil {
		return failure
	}
	if code, is := alertOf(err); is {
		return h.alertFailure(code, err)
	}
	record := tls.RecordHeaderError{}
	switch {
	case errors.As(err, &record):
		return failf(ServerWithoutTLS, err, "the server does not use TLS")
	case errors.Is(err, errNoHTTP2):
		return failf(ServerWithoutGRPC, err, "the server uses TLS, but not HTTP/2")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return failf(HandshakeFailed, err, "the server did not complete the TLS handshake in time")
	case closed(err):
		return failf(HandshakeFailed, err, "the server closed the connection during the TLS handshake")
	}
	return failf(HandshakeFailed, err, "the TLS handshake failed: %v", stable(err))
}

// classifyRead returns the failure that the first read of an established connection shows; nil if there is none.
func (h *handshake) classifyRead(_ []byte, err error) *Error {
	if code, is := alertOf(err); is {
		return h.alertFailure(code, err)
	}
	switch {
	case !closed(err):
		return nil
	case !h.requested.Load():
		return failf(HandshakeFailed, err, "the server closed the connection after the TLS handshake")
	case h.material.client == nil:
		return failf(ClientCertificateRequired, err, "the server requested a client certificate, and closed the connection without one")
	}
	return h.refusal("it closed the connection", err)
}

// certificateFailure returns the failure of the verification of the server's certificate; nil for other errors.
func (h *handshake) certificateFailure(err error) *Error {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		roots     x509.SystemRootsError
		other     *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &authority):
		return failf(UnknownAuthority, err, "the server's certificate is signed by an unknown authority%s", issuerOf(authority.Cert))
	case errors.As(err, &host):
		return h.nameFailure(host.Certificate, err)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil:
		return h.timeFailure(invalid.Cert, err)
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		return failf(ServerCertificateInvalid, err, "the server's certificate is not for servers: it lacks the extended key usage serverAuth")
	case errors.As(err, &roots):
		return failf(CAInvalid, err, "the authorities of the system cannot be read: %v", roots.Err)
	case errors.As(err, &other):
		return failf(ServerCertificateInvalid, err, "the server's certificate is invalid: %v", other.Err)
	}
	return nil
}

func issuerOf(certificate *x509.Certificate) string {
	if certificate == nil {
		return ""
	}
	return fmt.Sprintf("; its issuer is %q", certificate.Issuer.String())
}

func (h *handshake) nameFailure(certificate *x509.Certificate, err error) *Error {
	names := append([]string(nil), certificate.DNSNames...)
	for _, ip := range certificate.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return failf(WrongServerName, err, "the server's certificate has no subject alternative names, so it is not valid for %s", h.host)
	}
	return failf(WrongServerName, err, "the server's certificate is valid for %s, not for %s", nameList(names), h.host)
}

func (h *handshake) timeFailure(certificate *x509.Certificate, err error) *Error {
	what := "the server's certificate"
	if certificate.IsCA {
		what = fmt.Sprintf("the certificate of the authority %q", certificate.Subject.String())
	}
	if h.now().Before(certificate.NotBefore) {
		return failf(ServerCertificateNotYetValid, err, "%s is valid only from %s", what, certificate.NotBefore.UTC().Format(day))
	}
	return failf(ServerCertificateExpired, err, "%s has expired on %s", what, certificate.NotAfter.UTC().Format(day))
}

// alertFailure returns the failure that an alert of the server means. Before TLS 1.3, servers use several alerts for a
// missing client certificate.
func (h *handshake) alertFailure(code alert, err error) *Error {
	about := isAboutCertificate(code)
	switch {
	case code == alertCertificateRequired, h.requested.Load() && h.material.client == nil && about:
		return failf(ClientCertificateRequired, err, "the server requires a client certificate")
	case h.requested.Load() && h.material.client != nil && about:
		return h.refusal(code.String(), err)
	case code == alertProtocolVersion, code == alertInsufficientSecurity, code == alertHandshakeFailure:
		return failf(NoCommonParameters, err, "the server has no TLS version or cipher suite in common with the supervisor: %v", code)
	case code == alertNoApplicationProtocol:
		return failf(ServerWithoutGRPC, err, "the server uses TLS, but not HTTP/2")
	case code == alertUnrecognizedName:
		return failf(WrongServerName, err, "the server does not know the name %s", h.host)
	}
	return failf(HandshakeFailed, err, "the server ended the TLS handshake: %v", code)
}

// isAboutCertificate reports whether an alert can mean that a client certificate is missing or refused.
func isAboutCertificate(code alert) bool {
	switch code {
	case alertHandshakeFailure, alertBadCertificate, alertUnsupportedCert, alertCertificateRevoked, alertCertificateExpired,
		alertCertificateUnknown, alertUnknownCA, alertAccessDenied, alertCertificateRequired:
		return true
	default:
		return false
	}
}

// refusal returns the failure of a refused client certificate.
func (h *handshake) refusal(how string, err error) *Error {
	leaf, now := h.material.client.Leaf, h.now()
	switch {
	case now.After(leaf.NotAfter):
		return failf(ClientCertificateExpired, err, "the client certificate in Secret %s has expired on %s", h.material.settings.ClientSecret, leaf.NotAfter.UTC().Format(day))
	case now.Before(leaf.NotBefore):
		return failf(ClientCertificateNotYetValid, err, "the client certificate in Secret %s is valid only from %s", h.material.settings.ClientSecret, leaf.NotBefore.UTC().Format(day))
	}
	return failf(ClientCertificateRefused, err, "the server refuses the client certificate in Secret %s: %s", h.material.settings.ClientSecret, how)
}

// alertOf returns the alert that a server sent. Package crypto/tls has no exported type for it outside QUIC: the cause of
// its error is a number of one byte.
func alertOf(err error) (alert, bool) {
	op := (*net.OpError)(nil)
	if !errors.As(err, &op) || op.Op != "remote error" || op.Err == nil {
		return 0, false
	}
	value := reflect.ValueOf(op.Err)
	if value.Kind() != reflect.Uint8 {
		return 0, false
	}
	return alert(value.Uint()), true //nolint:gosec // a number of this kind has one byte
}

// closed reports whether the server has closed the connection.
func closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// stable returns the cause of an error of a connection, without its addresses.
func stable(err error) error {
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Err != nil {
		return op.Err
	}
	return err
}

// plainFailure returns a function that classifies the first read of a connection in plain text.
func plainFailure(authority string) func(first []byte, err error) *Error {
	const (
		recordAlert     = 21
		recordHandshake = 22
		recordVersion   = 3
	)
	return func(first []byte, err error) *Error {
		switch {
		case len(first) > 1 && (first[0] == recordAlert || first[0] == recordHandshake) && first[1] == recordVersion:
			return failf(ServerExpectsTLS, err, "the server at %s uses TLS, and the CatalogSource does not", authority)
		case len(first) == 0 && closed(err):
			return failf(ServerExpectsTLS, err, "the server at %s closed the connection instead of answering in plain text, as servers with TLS do", authority)
		}
		return nil
	}
}
