// Package webproxy is an HTTP proxy for tests. It records what it is asked for, and connects only to the hosts that the
// test names.
package webproxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/chandlery/chandlery/test/certificates"
)

// Proxy is a running proxy. It is safe for concurrent use.
type Proxy struct {
	// Address is its HOST:PORT.
	Address string

	hosts     map[string]string
	authority *certificates.Authority
	login     string

	mu    sync.Mutex
	asked []string
}

// Options configure a proxy.
type Options struct {
	// Hosts are the addresses to connect to, by the HOST:PORT that clients ask for. Others get 502.
	Hosts map[string]string
	// Authority makes the proxy intercept TLS with certificates of this authority; nil for none.
	Authority *certificates.Authority
	// Login is the required value of Proxy-Authorization; empty for none. Others get 407.
	Login string
}

// New runs a proxy until the test ends.
func New(tb testing.TB, o Options) *Proxy {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{Address: l.Addr().String(), hosts: o.Hosts, authority: o.Authority, login: o.Login}
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.serve(ctx, tb, conn) })
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		cancel()
		running.Wait()
	})
	return p
}

// Asked returns the method and the host of each request so far, sorted and each once.
func (p *Proxy) Asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(p.asked)))
}

// serve answers one request, and passes on the tunnel that it grants.
func (p *Proxy) serve(ctx context.Context, tb testing.TB, conn net.Conn) {
	tb.Helper()
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	reader := bufio.NewReader(conn)
	request, err := http.ReadRequest(reader)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.asked = append(p.asked, request.Method+" "+request.Host)
	p.mu.Unlock()
	to, known := p.hosts[request.Host]
	switch {
	case p.login != "" && request.Header.Get("Proxy-Authorization") != p.login:
		_, _ = io.WriteString(conn, "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
		return
	case !known || request.Method != http.MethodConnect:
		_, _ = io.WriteString(conn, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
		return
	}
	var server net.Conn
	if server, err = (&net.Dialer{}).DialContext(ctx, "tcp", to); err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	if p.authority == nil {
		join(conn, reader, server)
		return
	}
	host, _, _ := net.SplitHostPort(request.Host)
	inner := p.authority.Sign(tb, certificates.Request{Hosts: []string{host}}).Server(tb)
	inner.NextProtos = nil
	opened := tls.Server(&buffered{conn, reader}, inner)
	onward := tls.Client(server, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12})
	join(opened, opened, onward)
}

// join copies in both directions until one side ends.
func join(client net.Conn, from io.Reader, server net.Conn) {
	var running sync.WaitGroup
	running.Go(func() {
		_, _ = io.Copy(server, from)
		_ = server.Close()
	})
	_, _ = io.Copy(client, server)
	_ = client.Close()
	running.Wait()
}

// buffered is a connection with bytes that were read ahead.
type buffered struct {
	net.Conn

	reader *bufio.Reader
}

// Read returns the bytes that were read ahead first.
func (b *buffered) Read(p []byte) (int, error) { return b.reader.Read(p) } //nolint:wrapcheck // net.Conn promises its own errors.
