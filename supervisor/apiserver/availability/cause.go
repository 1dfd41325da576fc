// Package availability distinguishes temporary failures of an API server from errors that remain. A server fails
// temporarily if it cannot be reached or cannot answer. [CauseOf] is pure; [Monitor] waits.
package availability

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"syscall"

	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Causes of outages other than an HTTP status.
const (
	ConnectionRefused = "the connection is refused"
	NoRoute           = "no route leads to it"
	TimedOut          = "it does not answer in time"
	ConnectionLost    = "the connection ends before the answer"
	NameServerFailed  = "the name server does not answer"
)

// CauseOf returns why an API server could not answer, in words that are the same for all requests with that
// cause. It is empty if waiting does not help: for an answer, an untrusted certificate, a name that does not
// exist, and an error of the client.
func CauseOf(err error) string {
	var (
		status apierrors.APIStatus
		name   *net.DNSError
		direct net.Error
	)
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return ""
	case errors.As(err, &status):
		return CauseOfStatus(int(status.Status().Code))
	case errors.As(err, &name):
		if name.IsNotFound {
			return ""
		}
		return NameServerFailed
	case isAny(err, syscall.ECONNREFUSED):
		return ConnectionRefused
	case isAny(err, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.ENETDOWN):
		return NoRoute
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &direct) && direct.Timeout():
		return TimedOut
	case isConnectionLost(err):
		return ConnectionLost
	default:
		return ""
	}
}

// CauseOfStatus returns why an API server could not answer, by the HTTP status of its reply.
func CauseOfStatus(code int) string {
	switch {
	case code == http.StatusNotImplemented, code == http.StatusHTTPVersionNotSupported:
		return ""
	case code == http.StatusTooManyRequests, code >= http.StatusInternalServerError:
		return fmt.Sprintf("it answers %d %s", code, http.StatusText(code))
	default:
		return ""
	}
}

// isConnectionLost reports whether a connection ended without an answer.
func isConnectionLost(err error) bool {
	var stream http2.StreamError
	return errors.As(err, &stream) || isAny(err, io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE) ||
		utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}
