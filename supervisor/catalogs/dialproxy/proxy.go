package dialproxy

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/proxy"
)

// connectTimeout bounds the connection and the exchange with a proxy.
const connectTimeout = 20 * time.Second

// Proxy connects to addresses through a proxy, which resolves their names.
type Proxy struct {
	url      *url.URL
	variable string // where it was read from
}

// String returns the URL of the proxy without credentials, and the variable that it was read from.
func (p *Proxy) String() string {
	return fmt.Sprintf("proxy %s://%s of %s", p.url.Scheme, p.url.Host, p.variable)
}

// Dial connects to HOST:PORT. Its error names the proxy.
func (p *Proxy) Dial(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	dial := p.connect
	if p.url.Scheme == "socks5" || p.url.Scheme == "socks5h" {
		dial = p.socks
	}
	conn, err := dial(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s through %s: %w", address, p, err)
	}
	return conn, nil
}

// host returns HOST:PORT of the proxy.
func (p *Proxy) host() string {
	return net.JoinHostPort(p.url.Hostname(), cmp.Or(p.url.Port(), ports()[p.url.Scheme]))
}

func (p *Proxy) socks(ctx context.Context, address string) (net.Conn, error) {
	var auth *proxy.Auth
	if user := p.url.User; user != nil {
		password, _ := user.Password()
		auth = &proxy.Auth{User: user.Username(), Password: password}
	}
	dialer, err := proxy.SOCKS5("tcp", p.host(), auth, &net.Dialer{})
	if err != nil {
		return nil, err //nolint:wrapcheck // Dial says what it was for.
	}
	contextual, ok := dialer.(proxy.ContextDialer)
	if !ok {
		return nil, fmt.Errorf("%T cannot be given up", dialer)
	}
	return contextual.DialContext(ctx, "tcp", address) //nolint:wrapcheck // Dial says what it was for.
}

// connect asks an HTTP proxy for a tunnel.
func (p *Proxy) connect(ctx context.Context, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.host())
	if err != nil {
		return nil, err //nolint:wrapcheck // Dial says what it was for.
	}
	if p.url.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: p.url.Hostname(), MinVersion: tls.VersionTLS12})
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	tunnel, err := p.tunnel(ctx, conn, address)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return tunnel, nil
}

func (p *Proxy) tunnel(ctx context.Context, conn net.Conn, address string) (net.Conn, error) {
	request := (&http.Request{
		Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{},
	}).WithContext(ctx)
	if user := p.url.User; user != nil {
		password, _ := user.Password()
		request.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	if err := request.Write(conn); err != nil {
		return nil, fmt.Errorf("asking for a tunnel: %w", err)
	}
	reader := bufio.NewReader(conn)
	reply, err := http.ReadResponse(reader, request)
	if err != nil {
		return nil, fmt.Errorf("reading the reply to CONNECT: %w", err)
	}
	defer func() { _ = reply.Body.Close() }()
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the reply to CONNECT is %s", reply.Status)
	}
	return &tunnelled{Conn: conn, reader: reader}, nil
}

// tunnelled is a connection with bytes that were read ahead.
type tunnelled struct {
	net.Conn

	reader *bufio.Reader
}

// Read returns the bytes that were read ahead first.
func (t *tunnelled) Read(p []byte) (int, error) { return t.reader.Read(p) } //nolint:wrapcheck // net.Conn promises its own errors.
