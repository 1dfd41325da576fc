package webhook

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestStableError checks two failures of a connection to a pod, at different times and from different ports.
func TestStableError(t *testing.T) {
	at := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	end := func(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: port} }
	op := func(name string, err error) func(int) error {
		return func(n int) error {
			return &url.Error{Op: "Post", URL: "https://x/", Err: &net.OpError{Op: name, Net: "tcp", Source: end(40000 + n), Addr: end(9443), Err: err}}
		}
	}
	for name, tt := range map[string]struct {
		of   func(int) error
		want string
	}{
		"reset":       {op("read", os.NewSyscallError("read", syscall.ECONNRESET)), "read: connection reset by peer"},
		"broken pipe": {op("write", os.NewSyscallError("write", syscall.EPIPE)), "write: broken pipe"},
		"refused":     {op("dial", os.NewSyscallError("connect", syscall.ECONNREFUSED)), "connect: connection refused"},
		"alert":       {op("remote error", errors.New("tls: bad certificate")), "remote error: tls: bad certificate"},
		"end": {func(int) error {
			return &url.Error{Op: "Post", URL: "https://x/", Err: io.EOF}
		}, "EOF"},
		"expired": {func(n int) error {
			return fmt.Errorf("verifying: %w", x509.CertificateInvalidError{
				Reason: x509.Expired, Cert: &x509.Certificate{NotBefore: at, NotAfter: at.AddDate(1, 0, 0)},
				Detail: fmt.Sprintf("current time %s is after it", at.AddDate(2, 0, n)),
			})
		}, "x509: certificate has expired or is not yet valid: it is for 2026-08-01T12:00:00Z to 2027-08-01T12:00:00Z"},
		"other": {func(int) error { return errors.New("other") }, "other"},
	} {
		t.Run(name, func(t *testing.T) {
			for n := range 2 {
				err := tt.of(n)
				if got := StableError(err); got.Error() != tt.want || !errors.Is(got, err) {
					t.Errorf("told is %q, want %q; the error itself is found: %t", got, tt.want, errors.Is(got, err))
				}
				if Unreachable(err) != Unreachable(StableError(err)) {
					t.Error("it is told apart no more from a pod that answers")
				}
			}
		})
	}
}

// TestCertificateProblemIsStable checks that the message about an expired certificate is the same on the next day.
func TestCertificateProblemIsStable(t *testing.T) {
	s := mustServers(t, fixture())[0]
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	c, err := Issue(s, "ns", now)
	if err != nil {
		t.Fatal(err)
	}
	one, two := c.Problem(s, "ns", now.AddDate(3, 0, 0)), c.Problem(s, "ns", now.AddDate(3, 0, 1))
	if one == "" || one != two {
		t.Errorf("told is %q, and then %q", one, two)
	}
}
