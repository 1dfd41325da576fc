package dialtls

import (
	"fmt"
	"strings"
	"time"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/api"
)

// Reason is the kind of a failure, from which callers derive the remedy. It is a reason of
// api.ConditionConnectionSecured.
type Reason string

// Reasons of settings that cannot be used.
const (
	// SettingsInvalid means that an annotation of the CatalogSource is invalid.
	SettingsInvalid Reason = "TLSSettingsInvalid"
	// CANotFound means that the object with the authorities, or its key, does not exist.
	CANotFound Reason = "CANotFound"
	// CAInvalid means that the authorities cannot be read.
	CAInvalid Reason = "CAInvalid"
	// ClientCertificateNotFound means that the Secret with the client certificate, or one of its keys, does not exist.
	ClientCertificateNotFound Reason = "ClientCertificateNotFound"
	// MayNotRead means that there is no permission to read an object that an annotation names.
	MayNotRead Reason = "MayNotReadCertificates"
	// ClientCertificateInvalid means that the client certificate or its key cannot be used.
	ClientCertificateInvalid Reason = "ClientCertificateInvalid"
)

// Reasons of connections that fail.
const (
	// UnknownAuthority means that no trusted authority has signed the server's certificate.
	UnknownAuthority Reason = "UnknownAuthority"
	// WrongServerName means that the server's certificate is for other names.
	WrongServerName Reason = "WrongServerName"
	// ServerCertificateExpired means that the server's certificate, or that of an authority, has expired.
	ServerCertificateExpired Reason = "ServerCertificateExpired"
	// ServerCertificateNotYetValid means that such a certificate is not valid yet.
	ServerCertificateNotYetValid Reason = "ServerCertificateNotYetValid"
	// ServerCertificateInvalid means that the server's certificate is invalid in another way.
	ServerCertificateInvalid Reason = "ServerCertificateInvalid"
	// ServerWithoutTLS means that the server does not use TLS.
	ServerWithoutTLS Reason = "ServerWithoutTLS"
	// ServerExpectsTLS means that the server uses TLS, and the CatalogSource does not.
	ServerExpectsTLS Reason = "ServerExpectsTLS"
	// ServerWithoutGRPC means that the server uses TLS without HTTP/2, which gRPC requires.
	ServerWithoutGRPC Reason = "ServerWithoutGRPC"
	// ClientCertificateRequired means that the server requires a client certificate.
	ClientCertificateRequired Reason = "ClientCertificateRequired"
	// ClientCertificateExpired means that the client certificate has expired.
	ClientCertificateExpired Reason = "ClientCertificateExpired"
	// ClientCertificateNotYetValid means that the client certificate is not valid yet.
	ClientCertificateNotYetValid Reason = "ClientCertificateNotYetValid"
	// ClientCertificateRefused means that the server does not accept the client certificate.
	ClientCertificateRefused Reason = "ClientCertificateRefused"
	// NoCommonParameters means that the server supports no TLS version or cipher suite of the supervisor.
	NoCommonParameters Reason = "NoCommonParameters"
	// HandshakeFailed means that the handshake failed for another reason.
	HandshakeFailed Reason = "HandshakeFailed"
)

// Reasons of connections without a failure of TLS.
const (
	// Secured means that connections use TLS.
	Secured Reason = "Secured"
	// NotConnected means that there is no connection, for a reason that the status of the CatalogSource shows.
	NotConnected Reason = "NotConnected"
	// ClientCertificateExpiring means that the client certificate expires within a week.
	ClientCertificateExpiring Reason = "ClientCertificateExpiring"
)

// Error is the error of a connection, or of settings, with a reason.
type Error struct {
	// Reason is the kind of the error.
	Reason Reason
	// Text describes the error. It is equal for equal errors: it has no port of the client and no time of day.
	Text string
	// Err is the cause; nil if there is none.
	Err error
}

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Remedy returns what to do, as an imperative sentence.
func (e *Error) Remedy() string { return e.Reason.Remedy() }

// maxText limits the text of an error, in bytes. Servers choose a part of it.
const maxText = 1 << 10

// failf returns an error with a formatted text.
func failf(reason Reason, err error, format string, args ...any) *Error {
	return &Error{Reason: reason, Text: bundles.Clip(bundles.OneLine(fmt.Sprintf(format, args...)), maxText), Err: err}
}

// Remedy returns what to do about a failure, as an imperative sentence.
func (r Reason) Remedy() string {
	return map[Reason]string{
		SettingsInvalid:              "correct the annotation",
		CANotFound:                   "create the object with the PEM certificates of the authorities, or correct the annotation " + api.AnnotationTLS,
		CAInvalid:                    "correct the PEM certificates",
		MayNotRead:                   "permit the supervisor, or the user of kubectl, to get the object",
		ClientCertificateNotFound:    "create the Secret with tls.crt and tls.key, or correct the annotation " + api.AnnotationTLSClientCertificate,
		ClientCertificateInvalid:     "correct tls.crt and tls.key of the Secret",
		UnknownAuthority:             "name the server's authority with the annotation " + api.AnnotationTLS,
		WrongServerName:              "set the annotation " + api.AnnotationTLSServerName + " to a name of the certificate, or give the server another certificate",
		ServerCertificateExpired:     "renew the server's certificate",
		ServerCertificateNotYetValid: "check the clocks of the server and of the supervisor's node",
		ServerCertificateInvalid:     "give the server another certificate",
		ServerWithoutTLS:             "remove the annotation " + api.AnnotationTLS + ", or correct the port in spec.address",
		ServerExpectsTLS:             "if the server uses TLS, set the annotation " + api.AnnotationTLS,
		ServerWithoutGRPC:            "check that spec.address is that of a catalog, and that proxies in between pass on HTTP/2",
		ClientCertificateRequired:    "set the annotation " + api.AnnotationTLSClientCertificate,
		ClientCertificateExpired:     "renew the certificate in the Secret",
		ClientCertificateExpiring:    "renew the certificate in the Secret",
		ClientCertificateNotYetValid: "check the clock of the supervisor's node, or use another certificate",
		ClientCertificateRefused:     "use a certificate that is signed by an authority that the server trusts",
		NoCommonParameters:           "enable TLS 1.2 or newer in the server",
		HandshakeFailed:              "read the server's log",
	}[r]
}

// day is the format of the times in messages. With a time of day, each renewal would be a new message.
const day = time.DateOnly

// nameList returns the first names of a certificate.
func nameList(names []string) string {
	const most = 5
	shown := names[:min(len(names), most)]
	text := strings.Join(shown, ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}
