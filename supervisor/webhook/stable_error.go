package webhook

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"
)

// stableError is an error whose text does not differ between attempts.
type stableError struct {
	text string
	err  error
}

func (s *stableError) Error() string { return s.text }

func (s *stableError) Unwrap() error { return s.err }

// StableError returns an error of a connection with the same text for each failure of the same kind. It omits local
// ports, which differ each time, and the time of day. Each change of a text in a status is a write.
func StableError(err error) error {
	if invalid := (x509.CertificateInvalidError{}); errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil {
		return &stableError{err: err, text: fmt.Sprintf("x509: certificate has expired or is not yet valid: it is for %s to %s",
			invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339))}
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Err != nil {
		switch op.Op {
		case "dial", "read", "write":
			return &stableError{err: err, text: op.Err.Error()}
		}
		return &stableError{err: err, text: op.Op + ": " + op.Err.Error()}
	}
	if call := (*url.Error)(nil); errors.As(err, &call) && call.Err != nil {
		return &stableError{err: err, text: call.Err.Error()}
	}
	return err
}
