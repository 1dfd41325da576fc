package disconnected_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/chandlery/chandlery/test/certificates"
)

// prefix is the path of all copies in the mirror.
const prefix = "copies"

// mirror is a registry behind TLS of a private authority.
type mirror struct {
	// address is its host and port, and ca the certificate of its authority.
	address string
	ca      []byte
	// transport is for clients on this machine.
	transport http.RoundTripper

	mu sync.Mutex
	// removed are parts of the paths for which it answers "not found".
	removed []string
	// clients are the addresses that have asked for each repository.
	clients map[string]map[string]bool
}

// startMirror starts a mirror at an address of this machine. It stores blobs in a folder, and runs until the tests end.
func startMirror(t *testing.T, host, dir string) *mirror {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o700))
	authority := certificates.NewAuthority(t, "mirror")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	must(t, err)
	m := &mirror{
		address: listener.Addr().String(), ca: authority.PEM, clients: map[string]map[string]bool{},
		transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority.Pool(), MinVersion: tls.VersionTLS12}},
	}
	stored := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithBlobHandler(registry.NewDiskBlobHandler(dir)))
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo),
		TLSConfig: authority.Sign(t, certificates.Request{Hosts: []string{host}}).Server(t),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if m.note(r) {
				http.NotFound(w, r)
				return
			}
			stored.ServeHTTP(w, r)
		}),
	}
	go func() { _ = server.ServeTLS(listener, "", "") }() // It ends with the program.
	return m
}

// note records a request, and reports whether its content was removed.
func (m *mirror) note(r *http.Request) (removed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, part := range m.removed {
		removed = removed || strings.Contains(r.URL.Path, part)
	}
	repository, _, isManifest := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/"+prefix+"/"), "/manifests/")
	client, _, err := net.SplitHostPort(r.RemoteAddr)
	if !isManifest || err != nil {
		return removed
	}
	if m.clients[repository] == nil {
		m.clients[repository] = map[string]bool{}
	}
	m.clients[repository][client] = true
	return removed
}

// remove makes the mirror answer "not found" for paths with one of the parts, and for no others.
func (m *mirror) remove(parts ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.removed = parts
}

// clientsOf returns the addresses that have asked for manifests of a repository.
func (m *mirror) clientsOf(repository string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	for client := range m.clients[repository] {
		all = append(all, client)
	}
	return all
}

// forgetClients removes the recorded addresses.
func (m *mirror) forgetClients() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clients = map[string]map[string]bool{}
}

// allClients returns the addresses that have asked for any manifests.
func (m *mirror) allClients() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]bool{}
	for _, clients := range m.clients {
		maps.Copy(all, clients)
	}
	return slices.Sorted(maps.Keys(all))
}

// fill copies images. The keys are the references at the source, and the values those at the mirror.
func (m *mirror) fill(ctx context.Context, copies map[string]string) error {
	for from, to := range copies {
		if err := crane.Copy(from, to, crane.WithTransport(m.transport), crane.WithContext(ctx)); err != nil {
			return fmt.Errorf("copying %s to %s: %w", from, to, err)
		}
	}
	return nil
}

// hostsTOML returns containerd's settings that lead to the mirror. ca is the file with its authority.
func (m *mirror) hostsTOML(ca string) string {
	return fmt.Sprintf("[host.%q]\ncapabilities = [\"pull\", \"resolve\"]\noverride_path = true\nca = %q\n", "https://"+m.address+"/v2/"+prefix, ca)
}
