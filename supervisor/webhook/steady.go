package webhook

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"
)

// steady is an error whose text leaves out what differs from one attempt to the next.
type steady struct {
	text string
	err  error
}

func (s *steady) Error() string { return s.text }

func (s *steady) Unwrap() error { return s.err }

// Steady is an error of a connection whose text is the same each time that the same goes
// wrong: without the ports of this end, which are others each time, and without the time
// of day. What is told in a status has to be: each change of it is a write.
func Steady(err error) error {
	if invalid := (x509.CertificateInvalidError{}); errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil {
		return &steady{err: err, text: fmt.Sprintf("x509: certificate has expired or is not yet valid: it is for %s to %s",
			invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339))}
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Err != nil {
		switch op.Op {
		case "dial", "read", "write":
			return &steady{err: err, text: op.Err.Error()}
		}
		return &steady{err: err, text: op.Op + ": " + op.Err.Error()}
	}
	if call := (*url.Error)(nil); errors.As(err, &call) && call.Err != nil {
		return &steady{err: err, text: call.Err.Error()}
	}
	return err
}
