package grpcurl

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chandlery/chandlery/server"
	"github.com/chandlery/chandlery/server/source"
	"github.com/chandlery/chandlery/test/buildcache"
)

const catalog = `{"schema":"olm.package","name":"p","defaultChannel":"a"}
{"schema":"olm.channel","package":"p","name":"a","entries":[{"name":"b"}]}
{"schema":"olm.bundle","package":"p","name":"b","image":"i","properties":[
 {"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}`

// documented is the address in the documentation.
const documented = "registry.example.com:50051"

func TestDocumentedCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("builds grpcurl")
	}
	root, err := buildcache.SourceDir(".")
	if err != nil {
		t.Fatal(err)
	}
	commands := documentedCommands(t, filepath.Join(root, "docs", "operations.md"))
	if len(commands) < 5 {
		t.Fatalf("found %q, want all the commands", commands)
	}
	dir := t.TempDir()
	writeFiles(t, dir)
	plain, mutual := serve(t, dir, false), serve(t, dir, true)
	for _, command := range commands {
		t.Run(command, func(t *testing.T) {
			client := strings.Contains(command, "-cert ")
			address := plain
			if client {
				address = mutual
			}
			// The shell finds this repository's tool by this name.
			script := "grpcurl() { go tool -C " + root + " -modfile=tools/go.mod grpcurl \"$@\"; }\n" +
				strings.NewReplacer(documented, address, "ca.crt", filepath.Join(dir, "ca.crt"),
					"client.crt", filepath.Join(dir, "client.crt"), "client.key", filepath.Join(dir, "client.key")).Replace(command)
			out, err := exec.CommandContext(t.Context(), "bash", "-c", script).CombinedOutput()
			if err != nil || !answers(command, string(out)) {
				t.Errorf("%v, printed:\n%s", err, out)
			}
		})
	}
	// The server that requires a certificate accepts no client without one.
	script := exec.CommandContext(t.Context(), "go", "tool", "-modfile=tools/go.mod", "grpcurl", "-connect-timeout", "5",
		"-cacert", filepath.Join(dir, "ca.crt"), mutual, "list")
	script.Dir = root
	if out, err := script.CombinedOutput(); err == nil {
		t.Errorf("a client without a certificate is let in and told:\n%s", out)
	}
}

// answers reports whether the output is as documented.
func answers(command, out string) bool {
	switch {
	case strings.HasSuffix(command, " list"):
		return strings.Contains(out, "api.Registry\n") && strings.Contains(out, "grpc.health.v1.Health\n")
	case strings.HasSuffix(command, "Health/Check"):
		return strings.Contains(out, `"status": "SERVING"`)
	default:
		return strings.Contains(out, `"name": "p"`)
	}
}

// documentedCommands returns the lines of the documentation that run grpcurl.
func documentedCommands(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "grpcurl -") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// serve runs a server with the certificates and returns its address.
func serve(t *testing.T, dir string, mutual bool) string {
	t.Helper()
	files := server.TLS{Certificate: filepath.Join(dir, "server.crt"), Key: filepath.Join(dir, "server.key")}
	if mutual {
		files.ClientCA = filepath.Join(dir, "ca.crt")
	}
	loaded := make(chan struct{})
	s, err := server.New(t.Context(), server.Config{
		Source: source.Dir{Path: filepath.Join(dir, "catalog")}, Address: "127.0.0.1:0", TLS: files,
		Logger: slog.New(slog.DiscardHandler), OnLoaded: func() { close(loaded) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-loaded:
	case <-time.After(time.Minute):
		t.Fatal("the catalog is not loaded")
	}
	return s.Address().String()
}

// writeFiles writes a catalog and certificates.
func writeFiles(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, "catalog"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "catalog", "c.json"), []byte(catalog))
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	key := newKey(t)
	issue(t, dir, "ca", authority, authority, key, key)
	for i, name := range []string{"server", "client"} {
		issue(t, dir, name, &x509.Certificate{
			SerialNumber: big.NewInt(int64(2 + i)), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}, authority, newKey(t), key)
	}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issue writes a certificate and its key as NAME.crt and NAME.key.
func issue(t *testing.T, dir, name string, certificate, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, certificate, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, name+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	write(t, filepath.Join(dir, name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

func write(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
