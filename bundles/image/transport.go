package image

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"
)

const (
	dialTimeout   = 10 * time.Second
	headerTimeout = 30 * time.Second
	// stallTimeout is the longest time without data from a registry.
	stallTimeout = 30 * time.Second
)

var errStalled = errors.New("the registry stopped sending")

// newTransport returns the HTTP transport. It keeps no connection after an operation.
func newTransport(o *Options, endpoint *Endpoint) (*proxied, error) {
	roots, err := x509.SystemCertPool()
	if err != nil || roots == nil {
		roots = x509.NewCertPool()
	}
	for _, text := range endpoint.RootCAs {
		if !roots.AppendCertsFromPEM(text) {
			return nil, errNoCertificate
		}
	}
	dialer := net.Dialer{Timeout: cmp.Or(endpoint.DialTimeout, dialTimeout), KeepAlive: headerTimeout}
	proxy := o.Sources.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	return &proxied{&http.Transport{
		Proxy:                  proxy,
		OnProxyConnectResponse: refusedTunnel,
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    dialTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		IdleConnTimeout:        stallTimeout,
		MaxConnsPerHost:        8,
		// The headers of answers are foreign input, too.
		MaxResponseHeaderBytes: 256 << 10,
		ForceAttemptHTTP2:      true,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: endpoint.Certificates,
			InsecureSkipVerify: o.SkipTLSVerify || endpoint.SkipTLSVerify, //nolint:gosec // the help of the flag states the risk
		},
	}}, nil
}

// refusedTunnel returns an error that names a proxy that grants no tunnel; nil for one that does.
func refusedTunnel(_ context.Context, proxy *url.URL, connect *http.Request, reply *http.Response) error {
	switch reply.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusProxyAuthRequired:
		return fail(ReasonUnreachable, "proxy %s://%s denies the connection to %s: 407 %s; check the credentials for the proxy",
			proxy.Scheme, proxy.Host, connect.Host, http.StatusText(reply.StatusCode))
	default:
		return fail(ReasonUnreachable, "proxy %s://%s denies the connection to %s: %d %s",
			proxy.Scheme, proxy.Host, connect.Host, reply.StatusCode, http.StatusText(reply.StatusCode))
	}
}

var errNoCertificate = errors.New("there is no certificate in the PEM text")

// guard is a transport that refuses plain HTTP unless it is allowed. It limits every answer except
// layers and gives up on a registry that stalls.
type guard struct {
	inner     http.RoundTripper
	plainHTTP bool
	maxBytes  int64
	stall     time.Duration

	mu sync.Mutex
	// failure is the last failure of a request by HTTPS.
	failure error
}

// RoundTrip sends a request.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" && !g.plainHTTP {
		return nil, &failure{ReasonPlainHTTP, fmt.Errorf("%w: %s", errPlainHTTP, request.URL.Host)}
	}
	ctx, cancel := context.WithCancelCause(request.Context())
	response, err := g.inner.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel(nil)
		err = g.failed(request, err)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.failure = err
		return nil, err
	}
	if !isBlob(request) && response.ContentLength > g.maxBytes && request.Method != http.MethodHead {
		cancel(nil)
		_ = response.Body.Close()
		return nil, tooLongAnswer(firstOf(request).URL.Host, g.maxBytes)
	}
	if err := pageError(request, response); err != nil {
		cancel(nil)
		_ = response.Body.Close()
		return nil, err
	}
	left := g.maxBytes
	if isBlob(request) {
		left = -1
	}
	response.Body = &guardedBody{
		ReadCloser: response.Body, ctx: ctx, cancel: cancel, stall: g.stall, left: left,
		tooLong: tooLongAnswer(firstOf(request).URL.Host, g.maxBytes),
		timer:   time.AfterFunc(g.stall, func() { cancel(errStalled) }),
	}
	return response, nil
}

// cause returns the cause of an error. After a failure by HTTPS, the registry client tries plain HTTP for addresses of
// private networks. Its refusal is not the cause.
func (g *guard) cause(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failure != nil && errors.Is(err, errPlainHTTP) {
		return g.failure
	}
	return err
}

// failed returns an error that names plain HTTP, if the registry supports nothing else.
func (g *guard) failed(request *http.Request, err error) error {
	if _, isOfProxy := errors.AsType[*proxyError](err); isOfProxy {
		return err
	}
	record, ok := errors.AsType[tls.RecordHeaderError](err)
	if ok && string(record.RecordHeader[:]) == "HTTP/" && !g.plainHTTP {
		return &failure{ReasonPlainHTTP, fmt.Errorf("%w: %s does not speak TLS", errPlainHTTP, request.URL.Host)}
	}
	return err
}

var errPlainHTTP = errors.New("plain HTTP is not allowed")

// firstOf returns the request that a registry has redirected to another one.
func firstOf(request *http.Request) *http.Request {
	first := request
	for first.Response != nil && first.Response.Request != nil {
		first = first.Response.Request
	}
	return first
}

// pageError returns an error if the answer to a request for a manifest is a page for browsers. It may be there for a while.
func pageError(request *http.Request, response *http.Response) error {
	first := firstOf(request)
	dir, _ := path.Split(first.URL.Path)
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || kind != "text/html" || response.StatusCode != http.StatusOK || path.Base(dir) != "manifests" {
		return nil //nolint:nilerr // an unknown type is no page
	}
	return &failure{ReasonUnreachable, &foreignError{first.URL.Host, fmt.Errorf("%s %w", first.URL.Host, errPage)}}
}

var errPage = errors.New("answers with a page for browsers instead of a manifest")

// isBlob reports whether a request is for a layer or a configuration, whose size the manifest
// limits. A registry may redirect such requests.
func isBlob(request *http.Request) bool {
	first := firstOf(request)
	// A repository may be called blobs/sha256. No other path of the API ends with blobs and a
	// digest, because tags have no colon.
	rest, digest := path.Split(first.URL.Path)
	return path.Base(rest) == "blobs" && strings.Contains(digest, ":")
}

var errLongAnswer = errors.New("bytes where a manifest is expected")

func tooLongAnswer(host string, limit int64) error {
	return &failure{ReasonTooLarge, &foreignError{host, fmt.Errorf("the registry sends more than %d %w", limit, errLongAnswer)}}
}

// guardedBody is the body of an answer.
type guardedBody struct {
	io.ReadCloser

	ctx    context.Context
	cancel context.CancelCauseFunc
	stall  time.Duration
	timer  *time.Timer
	// left is the number of further bytes allowed; negative for any number. tooLong is the error of more.
	left    int64
	tooLong error
}

// Read reads from the body.
func (b *guardedBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.stall)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	if b.left >= 0 {
		if b.left -= int64(n); b.left < 0 {
			return 0, b.tooLong
		}
	}
	if err != nil && errors.Is(context.Cause(b.ctx), errStalled) {
		return n, errStalled
	}
	return n, err //nolint:wrapcheck // readers hand on io.EOF
}

// Close closes the body and releases its timer and context.
func (b *guardedBody) Close() error {
	b.timer.Stop()
	b.cancel(nil)
	return b.ReadCloser.Close() //nolint:wrapcheck // as if it were the body itself
}
