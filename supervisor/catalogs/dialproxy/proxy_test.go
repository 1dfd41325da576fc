package dialproxy_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/supervisor/catalogs/dialproxy"
)

func TestFor(t *testing.T) {
	const web, socks = "http://web.example:3128", "socks5://guest.example:1080"
	for name, tt := range map[string]struct {
		env     map[string]string
		address string
		want    string // the proxy; empty for none
		fails   string
	}{
		"no proxy":                          {address: "cat.example:443"},
		"outside the cluster":               {env: map[string]string{"HTTPS_PROXY": web}, address: "cat.example:443", want: "proxy http://web.example:3128 of HTTPS_PROXY"},
		"in lower case":                     {env: map[string]string{"https_proxy": web}, address: "cat.example:443", want: "proxy http://web.example:3128 of HTTPS_PROXY"},
		"without a scheme":                  {env: map[string]string{"HTTPS_PROXY": "web.example:3128"}, address: "cat.example:443", want: "proxy http://web.example:3128 of HTTPS_PROXY"},
		"HTTP_PROXY is for plain HTTP":      {env: map[string]string{"HTTP_PROXY": web}, address: "cat.example:443"},
		"a name without a dot":              {env: map[string]string{"HTTPS_PROXY": web}, address: "cat:50051"},
		"a Service":                         {env: map[string]string{"HTTPS_PROXY": web}, address: "cat.olm.svc:50051"},
		"a Service with the cluster domain": {env: map[string]string{"HTTPS_PROXY": web}, address: "cat.olm.svc.cluster.local:50051"},
		"a Service of another domain":       {env: map[string]string{"HTTPS_PROXY": web}, address: "cat.olm.svc.k8s.example.:50051"},
		"a Service in upper case":           {env: map[string]string{"HTTPS_PROXY": web}, address: "CAT.OLM.SVC.K8S.EXAMPLE:50051"},
		"a pod in upper case":               {env: map[string]string{"HTTPS_PROXY": web}, address: "10-0-0-1.olm.pod.Cluster.Local:50051"},
		"a pod with a final dot":            {env: map[string]string{"HTTPS_PROXY": web}, address: "10-0-0-1.olm.pod.cluster.local.:50051"},
		"a pod":                             {env: map[string]string{"HTTPS_PROXY": web}, address: "10-0-0-1.olm.pod.cluster.local:50051"},
		"an IP address":                     {env: map[string]string{"HTTPS_PROXY": web}, address: "192.0.2.1:50051"},
		"an IPv6 address":                   {env: map[string]string{"HTTPS_PROXY": web}, address: "[2001:db8::1]:50051"},
		"named like a Service":              {env: map[string]string{"HTTPS_PROXY": web}, address: "svc.example:443", want: "proxy http://web.example:3128 of HTTPS_PROXY"},
		"an exception":                      {env: map[string]string{"HTTPS_PROXY": web, "NO_PROXY": ".example"}, address: "cat.example:443"},
		"no address":                        {env: map[string]string{"HTTPS_PROXY": web}, address: "unix:///tmp/cat"},
		"GRPC_PROXY goes first":             {env: map[string]string{"GRPC_PROXY": socks, "HTTPS_PROXY": web}, address: "cat.example:443", want: "proxy socks5://guest.example:1080 of GRPC_PROXY"},
		"GRPC_PROXY inside the cluster":     {env: map[string]string{"GRPC_PROXY": socks}, address: "cat.olm.svc:50051", want: "proxy socks5://guest.example:1080 of GRPC_PROXY"},
		"an exception of GRPC_PROXY":        {env: map[string]string{"grpc_proxy": socks, "no_proxy": ".svc", "HTTPS_PROXY": web}, address: "cat.olm.svc:50051"},
		"an unknown scheme":                 {env: map[string]string{"GRPC_PROXY": "ftp://web.example"}, address: "cat.example:443", fails: `GRPC_PROXY has the scheme "ftp"; use one of http, https, socks5 and socks5h`},
		"no URL":                            {env: map[string]string{"GRPC_PROXY": "http://"}, address: "cat.example:443", fails: "GRPC_PROXY is no URL of a proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := dialproxy.FromEnvironment(func(key string) string { return tt.env[key] }).For(tt.address)
			switch {
			case tt.fails != "":
				if err == nil || err.Error() != tt.fails {
					t.Errorf("error %v, want %q", err, tt.fails)
				}
			case err != nil:
				t.Error(err)
			case got == nil && tt.want != "" || got != nil && got.String() != tt.want:
				t.Errorf("got %v, want %q", got, tt.want)
			}
		})
	}
}

func TestExcepting(t *testing.T) {
	for no, want := range map[string]string{
		"": "10.96.0.1,.svc", "*": "*,10.96.0.1,.svc", "example.com, .svc": "example.com,.svc,10.96.0.1", "10.96.0.1": "10.96.0.1,.svc",
	} {
		if got := (dialproxy.Environment{No: no}).Excepting("10.96.0.1", "", ".svc"); got != want {
			t.Errorf("of %q: %q, want %q", no, got, want)
		}
	}
}

// listener listens until the test ends. handle serves each connection.
func listener(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				handle(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return l.Addr().String()
}

// greet serves a connection as a catalog.
func greet(conn net.Conn) { _, _ = io.WriteString(conn, "hello\n") }

// asked records the requests to a proxy.
type asked struct {
	mu  sync.Mutex
	all []string
}

func (a *asked) note(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, what)
}

func (a *asked) list() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all
}

func pass(ctx context.Context, client net.Conn, from io.Reader, to string) {
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	go func() { _, _ = io.Copy(server, from) }()
	_, _ = io.Copy(client, server)
}

// web starts an HTTP proxy that connects every request to one address.
func web(t *testing.T, to string, a *asked) string {
	t.Helper()
	return listener(t, func(conn net.Conn) {
		reader := bufio.NewReader(conn)
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		a.note(request.Method + " " + request.Host + " " + request.Header.Get("Proxy-Authorization"))
		if strings.HasPrefix(request.Host, "refused.") {
			_, _ = io.WriteString(conn, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		pass(t.Context(), conn, reader, to)
	})
}

// eager starts an HTTP proxy whose reply arrives together with the first bytes of the catalog.
func eager(t *testing.T, _ string, a *asked) string {
	t.Helper()
	return listener(t, func(conn net.Conn) {
		request, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return
		}
		a.note(request.Method + " " + request.Host)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\nhello\n")
	})
}

// socks starts a SOCKS5 proxy without authentication that connects every request to one address.
func socks(t *testing.T, to string, a *asked) string {
	t.Helper()
	return listener(t, func(conn net.Conn) {
		head := make([]byte, 2)
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		if _, err := io.ReadFull(conn, make([]byte, head[1])); err != nil {
			return
		}
		_, _ = conn.Write([]byte{5, 0})
		request := make([]byte, 5)
		if _, err := io.ReadFull(conn, request); err != nil || request[3] != 3 {
			a.note("no name")
			return
		}
		name := make([]byte, int(request[4])+2)
		if _, err := io.ReadFull(conn, name); err != nil {
			return
		}
		a.note(string(name[:len(name)-2]))
		_, _ = conn.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		pass(t.Context(), conn, conn, to)
	})
}

// TestDial connects to a name that only the proxy resolves.
func TestDial(t *testing.T) {
	catalog := listener(t, greet)
	for name, tt := range map[string]struct {
		proxy func(*testing.T, string, *asked) string
		url   string
		to    string
		want  string
		fails string
	}{
		"CONNECT":             {web, "http://", "cat.invalid:443", "CONNECT cat.invalid:443 ", ""},
		"CONNECT with a user": {web, "http://u:p@", "cat.invalid:443", "CONNECT cat.invalid:443 Basic dTpw", ""},
		"CONNECT and bytes":   {eager, "http://", "cat.invalid:443", "CONNECT cat.invalid:443", ""},
		"CONNECT refused":     {web, "http://u:p@", "refused.invalid:443", "CONNECT refused.invalid:443 Basic dTpw", "502 Bad Gateway"},
		"SOCKS":               {socks, "socks5://", "cat.invalid:443", "cat.invalid", ""},
		"SOCKS by name":       {socks, "socks5h://", "cat.invalid:443", "cat.invalid", ""},
	} {
		t.Run(name, func(t *testing.T) {
			seen := &asked{}
			env := dialproxy.Environment{GRPC: tt.url + tt.proxy(t, catalog, seen)}
			proxy, err := env.For(tt.to)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := proxy.Dial(t.Context(), tt.to)
			if diff := cmp.Diff([]string{tt.want}, seen.list()); diff != "" {
				t.Errorf("the proxy was asked for (-want +got):\n%s", diff)
			}
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) || !strings.Contains(err.Error(), "of GRPC_PROXY") || strings.Contains(err.Error(), "u:p") {
					t.Errorf("error %v, want %q and the proxy in it", err, tt.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "hello\n" {
				t.Errorf("read %q, %v", line, err)
			}
		})
	}
}
