package availability_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/chandlery/chandlery/supervisor/apiserver/availability"
)

func TestCauseOf(t *testing.T) {
	t.Parallel()
	group := schema.GroupVersion{Group: "operators.coreos.com", Version: "v1"}
	discovery := func(err error) error { return new(apiutil.ErrResourceDiscoveryFailed{group: err}) }
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	answer := func(code int) error {
		return apierrors.NewGenericServerResponse(code, "get", schema.GroupResource{Resource: "namespaces"}, "a", "", 0, true)
	}
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"NoError":            {nil, ""},
		"Refused":            {dial(syscall.ECONNREFUSED), availability.ConnectionRefused},
		"NoRoute":            {dial(syscall.EHOSTUNREACH), availability.NoRoute},
		"NoNetwork":          {dial(syscall.ENETUNREACH), availability.NoRoute},
		"DialTimeout":        {dial(syscall.ETIMEDOUT), availability.TimedOut},
		"Deadline":           {context.DeadlineExceeded, availability.TimedOut},
		"Reset":              {&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, availability.ConnectionLost},
		"EndOfFile":          {io.EOF, availability.ConnectionLost},
		"HalfABody":          {io.ErrUnexpectedEOF, availability.ConnectionLost},
		"ConnectionLost":     {errors.New("http2: client connection lost"), availability.ConnectionLost},
		"StreamReset":        {fmt.Errorf("reading the body: %w", http2.StreamError{StreamID: 3, Code: http2.ErrCodeInternal}), availability.ConnectionLost},
		"NameServerSilent":   {&net.DNSError{Err: "i/o timeout", Name: "api", IsTimeout: true}, availability.NameServerFailed},
		"NameServerFails":    {&net.DNSError{Err: "server misbehaving", Name: "api", IsTemporary: true}, availability.NameServerFailed},
		"NoSuchName":         {&net.DNSError{Err: "no such host", Name: "api", IsNotFound: true}, ""},
		"Throttled":          {answer(http.StatusTooManyRequests), "it answers 429 Too Many Requests"},
		"InternalError":      {answer(http.StatusInternalServerError), "it answers 500 Internal Server Error"},
		"BadGateway":         {answer(http.StatusBadGateway), "it answers 502 Bad Gateway"},
		"Unavailable":        {answer(http.StatusServiceUnavailable), "it answers 503 Service Unavailable"},
		"GatewayTimeout":     {answer(http.StatusGatewayTimeout), "it answers 504 Gateway Timeout"},
		"NotImplemented":     {answer(http.StatusNotImplemented), ""},
		"Unauthorized":       {answer(http.StatusUnauthorized), ""},
		"Forbidden":          {answer(http.StatusForbidden), ""},
		"NotFound":           {answer(http.StatusNotFound), ""},
		"BadRequest":         {answer(http.StatusBadRequest), ""},
		"DiscoveryFails":     {discovery(answer(http.StatusServiceUnavailable)), "it answers 503 Service Unavailable"},
		"DiscoveryRefused":   {discovery(dial(syscall.ECONNREFUSED)), availability.ConnectionRefused},
		"DiscoveryForbidden": {discovery(answer(http.StatusForbidden)), ""},
		"NoSuchKind":         {&apimeta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Subscription"}}, ""},
		"UnknownAuthority":   {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, ""},
		"Expired":            {&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}, ""},
		"OtherName":          {x509.HostnameError{Certificate: &x509.Certificate{}, Host: "api"}, ""},
		"NoTLS":              {tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, ""},
		"TLSAlert":           {&net.OpError{Op: "remote error", Err: tls.AlertError(42)}, ""},
		"Scheme":             {http.ErrSchemeMismatch, ""},
		"NoTokenFile":        {&fs.PathError{Op: "open", Path: "/token", Err: syscall.ENOENT}, ""},
		"Cancelled":          {context.Canceled, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tt.err
			for _, wrap := range []func(error) error{
				func(err error) error { return err },
				func(err error) error { return &url.Error{Op: "Get", URL: "https://api", Err: err} },
				func(err error) error { return fmt.Errorf("reading: %w", err) },
			} {
				if err != nil {
					err = wrap(err)
				}
				if got := availability.CauseOf(err); got != tt.want {
					t.Errorf("%v: cause %q, want %q", err, got, tt.want)
				}
			}
		})
	}
}

// TestCauseOfConnections checks the causes of failures of real connections.
func TestCauseOfConnections(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		accept func(net.Conn)
		want   string
	}{
		"ClosedAtOnce": {accept: func(c net.Conn) { c.Close() }, want: availability.ConnectionLost},
		"NoHandshake":  {accept: func(net.Conn) {}, want: availability.TimedOut},
		"NoTLS":        {accept: func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan []net.Conn)
			go func() {
				var accepted []net.Conn
				for {
					conn, err := listener.Accept()
					if err != nil {
						done <- accepted
						return
					}
					accepted = append(accepted, conn)
					tt.accept(conn)
				}
			}()
			t.Cleanup(func() {
				listener.Close()
				for _, conn := range <-done {
					conn.Close()
				}
			})
			client := &http.Client{Transport: &http.Transport{TLSHandshakeTimeout: 200 * time.Millisecond}}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+listener.Addr().String(), http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(request)
			if err == nil {
				response.Body.Close()
				t.Fatal("there is an answer")
			}
			if got := availability.CauseOf(err); got != tt.want {
				t.Errorf("%v: cause %q, want %q", err, got, tt.want)
			}
		})
	}
}
