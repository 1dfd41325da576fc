package replicas_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/onsi/gomega"
	"google.golang.org/grpc/connectivity"

	"github.com/chandlery/chandlery/supervisor/catalogs/dialproxy"
	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

// webProxy is an HTTP proxy that connects every tunnel to one server and records the requested
// hosts.
type webProxy struct {
	url string

	mu    sync.Mutex
	asked []string
}

func newWebProxy(t *testing.T, to string) *webProxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &webProxy{url: "http://" + l.Addr().String()}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.tunnel(t, client, to) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return p
}

func (p *webProxy) tunnel(t *testing.T, client net.Conn, to string) {
	t.Helper()
	defer client.Close()
	reader := bufio.NewReader(client)
	request, err := http.ReadRequest(reader)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.asked = append(p.asked, request.Method+" "+request.Host)
	p.mu.Unlock()
	server, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(server, reader)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
	_ = client.Close()
	<-ended
}

func (p *webProxy) list() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// TestAnAddressGoesThroughTheProxyThatIsForIt follows catalogs at addresses and counts the requests
// to a proxy.
func TestAnAddressGoesThroughTheProxyThatIsForIt(t *testing.T) {
	server := serve(t, "one", false)
	for name, tt := range map[string]struct {
		proxies func(url string) dialproxy.Environment
		address string
		asked   string // empty: no request reaches the proxy
	}{
		"33 a name outside the cluster": {
			func(url string) dialproxy.Environment { return dialproxy.Environment{HTTPS: url} }, "cat.invalid:443", "CONNECT cat.invalid:443",
		},
		"33 a Service":     {func(url string) dialproxy.Environment { return dialproxy.Environment{HTTPS: url} }, "cat.olm.svc:50051", ""},
		"33 an IP address": {func(url string) dialproxy.Environment { return dialproxy.Environment{HTTPS: url} }, server.address, ""},
		"34 GRPC_PROXY for a Service": {
			func(url string) dialproxy.Environment { return dialproxy.Environment{GRPC: url} }, "cat.olm.svc:50051", "CONNECT cat.olm.svc:50051",
		},
		"34 an exception of GRPC_PROXY": {
			func(url string) dialproxy.Environment { return dialproxy.Environment{GRPC: url, No: ".svc"} }, "cat.olm.svc:50051", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := newWebProxy(t, server.address)
			b := newBench(t, replicas.Options{Proxies: tt.proxies(proxy.url)}, replicas.Endpoint{Address: tt.address, Ready: true})
			want := connectivity.Ready
			if tt.asked == "" && tt.address != server.address {
				// The name cannot be resolved.
				want = connectivity.TransientFailure
			}
			b.Eventually(func() connectivity.State { return b.set.Summary().Connectivity }).WithTimeout(patience).Should(gomega.Equal(want))
			asked := proxy.list()
			if tt.asked == "" && len(asked) > 0 || tt.asked != "" && !slices.Equal(asked, []string{tt.asked}) {
				t.Errorf("the proxy was asked for %q, want %q", asked, tt.asked)
			}
		})
	}
	t.Run("a proxy that does not answer is named, without its credentials", func(t *testing.T) {
		b := newBench(t, replicas.Options{Proxies: dialproxy.Environment{GRPC: "http://u:p@127.0.0.1:1"}}, replicas.Endpoint{Address: "cat.olm.svc:50051", Ready: true})
		b.Eventually(func() error { return b.set.Summary().Err }).WithTimeout(patience).Should(gomega.MatchError(gomega.And(
			gomega.ContainSubstring("through proxy http://127.0.0.1:1 of GRPC_PROXY"), gomega.Not(gomega.ContainSubstring("u:p")),
		)))
	})
	t.Run("34 an unknown scheme is shown", func(t *testing.T) {
		b := newBench(t, replicas.Options{Proxies: dialproxy.Environment{GRPC: "ftp://web.invalid"}}, replicas.Endpoint{Address: "cat.invalid:443", Ready: true})
		b.Eventually(func() error { return b.set.Summary().Err }).WithTimeout(patience).Should(gomega.MatchError(gomega.ContainSubstring(`GRPC_PROXY has the scheme "ftp"`)))
	})
}
