package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// serving runs the program on a catalog until the test ends and returns its
// address.
func serving(t *testing.T, text string) string {
	t.Helper()
	dir := writeCatalog(t, text)
	ctx, stop := context.WithCancel(t.Context())
	logs := &logWatch{address: make(chan string, 1)}
	cmd := newCommand()
	cmd.SetErr(logs)
	cmd.SetArgs([]string{
		"serve", dir, "--log-format=json", "--port=0", "--host=127.0.0.1", "--metrics-address=0", "--termination-log=", "--pprof-addr=",
	})
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("serving: %v\n%s", err, logs)
		}
	})
	select {
	case address := <-logs.address:
		return waitServing(t, address)
	case <-time.After(20 * time.Second):
		t.Fatalf("the program does not say where it serves:\n%s", logs)
		return ""
	}
}

// waitServing waits until the server has loaded its content.
func waitServing(t *testing.T, address string) string {
	t.Helper()
	conn, err := (&connectionFlags{maxMessage: 1 << 20}).dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	watch, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	for {
		answer, err := watch.Recv()
		if err != nil {
			t.Fatalf("waiting for the program to serve: %v", err)
		}
		if answer.GetStatus() == healthpb.HealthCheckResponse_SERVING {
			return address
		}
	}
}

func TestQuery(t *testing.T) {
	address := serving(t, sampleCatalog+catalog)
	cases := map[string]struct {
		reason string
		args   []string
		failed bool
		want   string
	}{
		"Packages":      {reason: "as list prints them", args: []string{"packages"}, want: "lamp      stable            lamp.v2   2.0.0     yes\n"},
		"Channels":      {reason: "as list prints them", args: []string{"channels", "lamp"}, want: "lamp      stable    yes       lamp.v2   2.0.0\n"},
		"Bundles":       {reason: "as list prints them", args: []string{"bundles", "lamp", "-o", "name"}, want: "lamp/lamp.v2\nlamp/lamp.v1\n"},
		"Package":       {reason: "its channels", args: []string{"package", "lamp"}, want: "stable    yes       lamp.v2\nThe package is deprecated: use a torch\n"},
		"PackageJSON":   {reason: "for programs", args: []string{"package", "lamp", "-o", "json"}, want: `"deprecation": "use a torch"`},
		"Head":          {reason: "without a name it is the head", args: []string{"bundle", "lamp", "stable"}, want: "Name:          lamp.v2\n"},
		"Bundle":        {reason: "with its deprecation", args: []string{"bundle", "lamp", "stable", "lamp.v1"}, want: "Deprecated:  too dim\n"},
		"BundleYAML":    {reason: "manifests are no text in a text", args: []string{"bundle", "lamp", "stable", "-o", "yaml"}, want: "    displayName: A Lamp\n"},
		"Graph":         {reason: "drawn from any server", args: []string{"graph", "lamp", "-o", "dot"}, want: "digraph \"lamp\""},
		"Providers":     {reason: "of an API", args: []string{"providers", "g/v1/K"}, want: "lamp      stable    lamp.v2   lamp.v0\nlamp      stable    lamp.v2   lamp.v1\n"},
		"Latest":        {reason: "skipped names that the channel lacks are left out", args: []string{"providers", "g/v1/K", "--latest", "-o", "json"}, want: "\"replaces\": \"lamp.v1\"\n  }\n]"},
		"BadAPI":        {reason: "the form is shown", args: []string{"providers", "K"}, failed: true, want: "GROUP/VERSION/KIND"},
		"Replaces":      {reason: "who replaces a bundle", args: []string{"replaces", "lamp.v1"}, want: "lamp      stable    lamp.v2   lamp.v1\n"},
		"Health":        {reason: "the server is ready", args: []string{"health"}, want: "SERVING\n"},
		"Info":          {reason: "what is served", args: []string{"info"}, want: "2 packages, 3 channels, 3 bundles, 4 entries"},
		"Search":        {reason: "by words", args: []string{"search", "lamp"}, want: "lamp      A Lamp"},
		"Deprecations":  {reason: "with their messages", args: []string{"deprecations", "lamp"}, want: "lamp      bundle    lamp.v1   too dim\n"},
		"NoSuchPackage": {reason: "the server says so", args: []string{"package", "nope"}, failed: true, want: `package "nope" not found (NotFound)`},
		"NoSuchRow":     {reason: "packages are helped with here", args: []string{"bundles", "lam"}, failed: true, want: "there is lamp"},
		"TooLarge":      {reason: "the flag is named, and the other cause of that code", args: []string{"packages", "--max-message-size=3"}, failed: true, want: "the rate limit of the server (its --max-call-rate) is reached, or raise --max-message-size"},
		"TooSlow":       {reason: "the flag is named", args: []string{"bundles", "--timeout=1ns"}, failed: true, want: "raise --timeout"},
		"WrongForm":     {reason: "a table is no picture", args: []string{"packages", "-o", "svg"}, failed: true, want: "only graph can be had as svg"},
		"TooFew":        {reason: "the usage is shown", args: []string{"package"}, failed: true, want: "registry query ADDRESS package PACKAGE"},
		"Unknown":       {reason: "the help is pointed at", args: []string{"nope"}, failed: true, want: `"nope" is not known`},
		"NotTLS":        {reason: "the server speaks none", args: []string{"packages", "--tls"}, failed: true, want: "Unavailable"},
		"HalfACert":     {reason: "flags that go together", args: []string{"packages", "--cert=x"}, failed: true, want: "--cert and --key go together"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			output, failed := run(t.Context(), append([]string{"query", address}, tc.args...)...)
			if failed != tc.failed || !strings.Contains(output, tc.want) {
				t.Errorf("%s: failed is %v, output:\n%s\nwant: %s", tc.reason, failed, output, tc.want)
			}
		})
	}
}

// certificate returns a self-signed certificate and its file.
func certificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"catalog.example.org"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

// TestQueryTLS queries a foreign server over TLS.
func TestQueryTLS(t *testing.T) {
	pair, file := certificate(t)
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})))
	state := health.NewServer()
	state.SetServingStatus("sleeping", healthpb.HealthCheckResponse_NOT_SERVING)
	healthpb.RegisterHealthServer(server, state)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	cases := map[string]struct {
		reason string
		args   []string
		failed bool
		want   string
	}{
		"CA":            {reason: "the authority is known", args: []string{"health", "--ca", file}, want: "SERVING\n"},
		"ServerName":    {reason: "the certificate has another name too", args: []string{"health", "--ca", file, "--server-name=catalog.example.org"}, want: "SERVING\n"},
		"WrongName":     {reason: "but not this one", args: []string{"health", "--ca", file, "--server-name=example.net"}, failed: true, want: "not example.net"},
		"UnknownCA":     {reason: "the system does not know the authority", args: []string{"health", "--tls"}, failed: true, want: "unknown authority"},
		"Insecure":      {reason: "nothing is verified", args: []string{"health", "--insecure-skip-tls-verify"}, want: "SERVING\n"},
		"Plain":         {reason: "TLS must be asked for", args: []string{"health"}, failed: true, want: "(--tls)"},
		"NoCA":          {reason: "the file is named", args: []string{"health", "--ca", file + "x"}, failed: true, want: "reading --ca"},
		"NotServing":    {reason: "a state is no failure of the call", args: []string{"health", "sleeping", "--ca", file, "-o", "json"}, failed: true, want: `"status": "NOT_SERVING"`},
		"NotACatalog":   {reason: "what is missing is said", args: []string{"packages", "--ca", file}, failed: true, want: "does not support the query"},
		"NoExtension":   {reason: "other servers lack it", args: []string{"search", "x", "--ca", file}, failed: true, want: "does not support the query"},
		"NoCertificate": {reason: "the file is named", args: []string{"health", "--ca", "query_test.go"}, failed: true, want: "contains no certificate"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			output, failed := run(t.Context(), append([]string{"query", listener.Addr().String()}, tc.args...)...)
			if failed != tc.failed || !strings.Contains(output, tc.want) {
				t.Errorf("%s: failed is %v, output:\n%s\nwant: %s", tc.reason, failed, output, tc.want)
			}
		})
	}
}

func TestWithPort(t *testing.T) {
	for in, want := range map[string]string{
		"localhost": "localhost:50051", "localhost:1": "localhost:1", "::1": "[::1]:50051", "[::1]": "[::1]:50051",
		"[::1]:7": "[::1]:7", "unix:/run/x": "unix:/run/x", "dns:///a:1": "dns:///a:1",
	} {
		if got := withPort(in); got != want {
			t.Errorf("withPort(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestRawJSON(t *testing.T) {
	for in, want := range map[string]string{`{"a":1}`: `{"a":1}`, "kind: A": `"kind: A"`, "": `""`} {
		if got := rawJSON(in); string(got) != want || !json.Valid(got) {
			t.Errorf("rawJSON(%q) = %s, want %s", in, got, want)
		}
	}
}
