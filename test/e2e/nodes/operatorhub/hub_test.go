package operatorhub_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/chandlery/chandlery/test/certificates"
	"github.com/chandlery/chandlery/test/nodes"
)

// listed is an operator in OperatorHub.io.
type listed struct {
	name, channel, version string
	// global is set for an operator that supports all namespaces.
	global bool
}

// namespace returns the namespace in which the instructions install the operator.
func (l listed) namespace() string {
	if l.global {
		return "operators"
	}
	return "my-" + l.name
}

// instructions returns the manifest that OperatorHub.io prints.
func (l listed) instructions() string {
	text := ""
	if !l.global {
		text = fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata:
  name: my-%[1]s
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata:
  name: operatorgroup
  namespace: my-%[1]s
spec:
  targetNamespaces:
  - my-%[1]s
---
`, l.name)
	}
	return text + fmt.Sprintf(`apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata:
  name: my-%[1]s
  namespace: %[2]s
spec:
  channel: %[3]s
  name: %[1]s
  source: operatorhubio-catalog
  sourceNamespace: olm
`, l.name, l.namespace(), l.channel)
}

// serveHub serves the instructions of operators as https://operatorhub.io until the test ends. It returns the variables
// with which kubectl reaches this server: a proxy, and the certificate of its authority.
func serveHub(t *testing.T, bed *nodes.Bed, operators []listed) []string {
	t.Helper()
	mux := http.NewServeMux()
	for _, l := range operators {
		mux.HandleFunc("GET operatorhub.io/install/"+l.name+".yaml", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, l.instructions()) // kubectl reports what is missing
		})
	}
	authority := certificates.NewAuthority(t, "hub")
	server := httptest.NewUnstartedServer(mux)
	server.EnableHTTP2 = true
	server.TLS = authority.Sign(t, certificates.Request{Hosts: []string{"operatorhub.io"}}).Server(t)
	server.StartTLS()
	t.Cleanup(server.Close)
	proxy := httptest.NewServer(forwardTo(server.Listener.Addr().String()))
	t.Cleanup(proxy.Close)
	file := filepath.Join(t.TempDir(), "ca.crt")
	must(t, os.WriteFile(file, authority.PEM, 0o600))
	api, err := url.Parse(bed.Config().Host)
	must(t, err)
	return []string{"HTTPS_PROXY=" + proxy.URL, "NO_PROXY=" + api.Hostname(), "SSL_CERT_FILE=" + file}
}

// forwardTo returns a proxy that forwards connections for operatorhub.io to a server, and refuses others.
func forwardTo(server string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != "operatorhub.io:443" {
			http.Error(w, "only operatorhub.io is served", http.StatusForbidden)
			return
		}
		var dialer net.Dialer
		upstream, err := dialer.DialContext(r.Context(), "tcp", server)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer upstream.Close()
		w.WriteHeader(http.StatusOK)
		downstream, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer downstream.Close()
		var running sync.WaitGroup
		running.Go(func() {
			_, _ = io.Copy(upstream, buffered) // the other end notices
			_ = upstream.Close()
		})
		_, _ = io.Copy(downstream, upstream) // the other end notices
		_ = downstream.Close()
		running.Wait()
	})
}
