package image

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// listen serves connections with a function, and returns the address.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				serve(conn)
				_ = conn.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

// byProxy uses a proxy for all requests.
func byProxy(t *testing.T, text string) func(*Options) {
	t.Helper()
	proxy, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return func(o *Options) {
		o.PlainHTTP, o.Attempts, o.ResolveTimeout = false, 1, 500*time.Millisecond
		o.Sources.Proxy = func(*http.Request) (*url.URL, error) { return proxy, nil }
	}
}

// TestBrokenProxy has servers that are not the proxy that the URL names. The registry is not at fault.
func TestBrokenProxy(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	web := server.Listener.Addr().String()
	secure := serve(t, (*httptest.Server).StartTLS)
	silent := listen(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	closing := listen(t, func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1000)) })
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	const noTunnel = "gives no connection to registry.example.com: "
	for name, tc := range map[string]struct {
		reason, scheme, host string
		plainHTTP            bool
		want                 Reason
		text, remedy         string
	}{
		"PlainHTTP": {
			reason: "the proxy speaks plain HTTP", scheme: "https", host: web, text: "does not speak TLS", remedy: "write the URL of the proxy with http://",
		},
		"NoTLS":       {reason: "the proxy speaks something else", scheme: "https", host: closing, text: "cannot be used: "},
		"Gone":        {reason: "there is no server", scheme: "http", host: gone.Listener.Addr().String(), text: "refused"},
		"Closes":      {reason: "the server is no proxy", scheme: "http", host: closing, text: noTunnel + "unexpected EOF"},
		"Silent":      {reason: "the server does not answer", scheme: "http", host: silent, text: noTunnel + "took longer than 500ms"},
		"Forwarded":   {reason: "the server is no proxy for plain HTTP", scheme: "http", host: closing, plainHTTP: true, text: noTunnel},
		"SOCKS":       {reason: "the server speaks HTTP", scheme: "socks5", host: web, text: noTunnel},
		"SOCKSSilent": {reason: "the server waits", scheme: "socks5", host: silent, text: noTunnel},
		"Refuses": {
			reason: "the server is no proxy, but answers", scheme: "http", host: web, remedy: " ",
			text: "denies the connection to registry.example.com:443: 404",
		},
		"Certificate": {
			reason: "the certificate of the proxy is unknown", scheme: "https", host: secure.host(),
			want: ReasonUntrusted, text: "cannot be used: tls: failed to verify certificate", remedy: " ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := client(t, func(o *Options) {
				byProxy(t, tc.scheme+"://user:hidden@"+tc.host)(o)
				o.PlainHTTP = tc.plainHTTP
			})
			_, err := c.Resolve(t.Context(), "registry.example.com/a:v1")
			if tc.want == "" {
				tc.want = ReasonUnreachable
			}
			if ReasonOf(err) != tc.want || !strings.Contains(err.Error(), "proxy "+tc.scheme+"://"+tc.host+" ") ||
				!strings.Contains(err.Error(), tc.text) || strings.Contains(err.Error(), "hidden") {
				t.Errorf("%s: got %v (%s), want %q", tc.reason, err, ReasonOf(err), tc.text)
			}
			if tc.remedy == "" {
				tc.remedy = "check scheme, address and port of the proxy"
			}
			if got := Remedy(err); tc.remedy != " " && !strings.Contains(got, tc.remedy) {
				t.Errorf("%s: the remedy is %q, want %q", tc.reason, got, tc.remedy)
			}
		})
	}
}

// TestRegistryBehindProxy has a proxy that connects to registries with faults. The proxy is not at fault.
func TestRegistryBehindProxy(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		to, err := net.Dial("tcp", request.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		from, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
		go func() {
			_, _ = io.Copy(to, from)
			_ = to.Close()
		}()
		_, _ = io.Copy(from, to)
		_ = from.Close()
	}))
	defer proxy.Close()
	web := serve(t, (*httptest.Server).Start)
	secure := serve(t, (*httptest.Server).StartTLS)
	c := client(t, func(o *Options) {
		byProxy(t, proxy.URL)(o)
		o.ResolveTimeout = 10 * time.Second
	})
	_, err := c.Resolve(t.Context(), web.host()+"/a:v1")
	expect(t, "the registry speaks plain HTTP", err, web.host()+"/a:v1", ReasonPlainHTTP, web.host()+" does not speak TLS")
	_, err = c.Resolve(t.Context(), secure.host()+"/a:v1")
	expect(t, "the certificate of the registry is unknown", err, secure.host()+"/a:v1", ReasonUntrusted, "tls: failed to verify")
	if strings.Contains(err.Error(), "proxy") {
		t.Errorf("the proxy is blamed: %v", err)
	}
}
