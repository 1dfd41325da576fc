package image

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
)

// proxied is a transport whose errors name the proxy if the proxy is at fault.
type proxied struct{ *http.Transport }

// RoundTrip sends a request.
func (p *proxied) RoundTrip(request *http.Request) (*http.Response, error) {
	proxy, err := p.Proxy(request)
	if err != nil || proxy == nil {
		return p.Transport.RoundTrip(request) //nolint:wrapcheck // as if it were the transport itself
	}
	var c connecting
	response, err := p.Transport.RoundTrip(request.WithContext(c.watch(request.Context())))
	if err != nil {
		return nil, c.explain(request, proxy, err)
	}
	response.Request = request
	return response, nil
}

// connecting is the progress of a request by a proxy.
type connecting struct {
	// dialed is set if there is a connection to a server, and connected if it is ready for the request.
	dialed, connected atomic.Bool
	// handshakes is the number of begun TLS handshakes: with the proxy, if it has TLS, and with the registry.
	handshakes atomic.Int32
}

// watch returns a context for a request.
func (c *connecting) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		ConnectDone: func(_, _ string, err error) {
			if err == nil {
				c.dialed.Store(true)
			}
		},
		TLSHandshakeStart: func() { c.handshakes.Add(1) },
		GotConn:           func(httptrace.GotConnInfo) { c.connected.Store(true) },
	})
}

// explain returns the error of a request. It names the proxy if the request ended there.
func (c *connecting) explain(request *http.Request, proxy *url.URL, err error) error {
	if ReasonOf(err) != "" {
		return err // the proxy has answered, and the error names it
	}
	found := &proxyError{proxy: proxy.Scheme + "://" + proxy.Host, target: request.URL.Host, err: err}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "proxyconnect" {
		found.err, found.stage = dial.Err, "cannot be used"
		if record, ok := errors.AsType[tls.RecordHeaderError](err); ok && string(record.RecordHeader[:]) == "HTTP/" {
			found.stage, found.isPlain = "does not speak TLS", true
		}
		return found
	}
	if !c.endsAtProxy(request, proxy) {
		return err
	}
	found.stage = "gives no connection to " + request.URL.Host
	return found
}

// endsAtProxy reports whether a request failed before the proxy had connected to the registry.
func (c *connecting) endsAtProxy(request *http.Request, proxy *url.URL) bool {
	if request.URL.Scheme == "http" && proxy.Scheme != "socks5" && proxy.Scheme != "socks5h" {
		// The proxy forwards such requests on the connection to it. The registry may have taken too long.
		return request.Context().Err() == nil
	}
	var own int32 // the number of handshakes with the proxy
	if proxy.Scheme == "https" {
		own = 1
	}
	return c.dialed.Load() && !c.connected.Load() && c.handshakes.Load() <= own
}

// proxyError is the error of a proxy.
type proxyError struct {
	// proxy is its URL without credentials, and target the server to connect to.
	proxy, target string
	// stage is what the proxy does not do. isPlain is set if its URL has https, but it speaks plain HTTP.
	stage   string
	isPlain bool
	err     error
}

// Error names the proxy.
func (e *proxyError) Error() string {
	if e.isPlain {
		return fmt.Sprintf("proxy %s %s", e.proxy, e.stage)
	}
	return fmt.Sprintf("proxy %s %s: %s", e.proxy, e.stage, clipTo(plain(e.err).Error(), maxAnswer))
}

// Unwrap returns the cause.
func (e *proxyError) Unwrap() error { return e.err }

// remedy returns what to do.
func (e *proxyError) remedy() string {
	if e.isPlain {
		return "write the URL of the proxy with http://, usually in HTTPS_PROXY"
	}
	return "check scheme, address and port of the proxy, usually in HTTPS_PROXY, and whether it may connect to " + e.target
}
