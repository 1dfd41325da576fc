package supervisor

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// Variables of the process that requests the version of an API server.
const (
	childServer = "CHANDLERY_TEST_SERVER"
	childKeeps  = "CHANDLERY_TEST_KEEPS"
)

// ask requests the version of an API server, as the supervisor does if keep is true.
func ask(ctx context.Context, server string, keep bool) error {
	cfg := &rest.Config{Host: server}
	cfg.Insecure = true
	if keep {
		if _, err := excludeFromProxies(cfg); err != nil {
			return err
		}
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return err //nolint:wrapcheck // The test says what it was for.
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/version", http.NoBody)
	if err != nil {
		return err //nolint:wrapcheck // The same.
	}
	reply, err := client.Do(request)
	if err != nil {
		return err //nolint:wrapcheck // The same.
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return errors.New(reply.Status)
	}
	return nil
}

// ownAddress returns an address of this machine outside the loopback interface, for which proxies are never
// used.
func ownAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if n, is := a.(*net.IPNet); is && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Fatal("this machine has no IPv4 address but that of the loopback interface; give it a network")
	return ""
}

// TestAPIServerIsNotReachedThroughTheProxy sends a request to an API server from a process with HTTPS_PROXY. A
// separate process is needed because a process reads the variable once.
func TestAPIServerIsNotReachedThroughTheProxy(t *testing.T) {
	if server := os.Getenv(childServer); server != "" {
		if err := ask(t.Context(), server, os.Getenv(childKeeps) != ""); err != nil {
			t.Fatal(err)
		}
		return
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(ownAddress(t), "0"))
	if err != nil {
		t.Fatal(err)
	}
	_ = server.Listener.Close()
	server.Listener = l
	server.StartTLS()
	defer server.Close()
	var connects atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			connects.Add(1)
		}
		http.Error(rw, "this way leads out of the cluster", http.StatusBadGateway)
	}))
	defer proxy.Close()
	for name, tt := range map[string]struct {
		keeps string
		works bool
	}{
		"as the supervisor does":                    {keeps: "yes", works: true},
		"without that, by which the test is tested": {},
	} {
		t.Run(name, func(t *testing.T) {
			connects.Store(0)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestAPIServerIsNotReachedThroughTheProxy$")
			child.Env = append(os.Environ(), childServer+"="+server.URL, childKeeps+"="+tt.keeps, "HTTPS_PROXY="+proxy.URL, "NO_PROXY=", "no_proxy=")
			out, err := child.CombinedOutput()
			if (err == nil) != tt.works || (connects.Load() == 0) != tt.works {
				t.Errorf("%d times CONNECT, %v:\n%s", connects.Load(), err, out)
			}
		})
	}
}

// TestKeepFromProxies compares NO_PROXY before and after.
func TestKeepFromProxies(t *testing.T) {
	for name, tt := range map[string]struct{ https, no, want string }{
		"no proxy":   {"", "example.com", "example.com"},
		"a proxy":    {"http://web.example", "", "10.96.0.1,.svc,.cluster.local"},
		"exceptions": {"http://web.example", "example.com,.svc", "example.com,.svc,10.96.0.1,.cluster.local"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{"HTTP_PROXY", "http_proxy", "https_proxy", "no_proxy"} {
				t.Setenv(variable, "")
			}
			t.Setenv("HTTPS_PROXY", tt.https)
			t.Setenv("NO_PROXY", tt.no)
			before, err := excludeFromProxies(&rest.Config{Host: "https://10.96.0.1:443"})
			if err != nil || before.No != tt.no {
				t.Errorf("before: %+v, %v", before, err)
			}
			if got := os.Getenv("NO_PROXY"); got != tt.want {
				t.Errorf("NO_PROXY is %q, want %q", got, tt.want)
			}
		})
	}
}
