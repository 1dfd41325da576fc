package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/server/source"
)

// startTwoPorts runs a server with a port in plain text and one with TLS.
func startTwoPorts(t *testing.T, s *secret) (f *fixture, plain, secured string) {
	t.Helper()
	dir := t.TempDir()
	writeCatalog(t, dir, catalogOf("p"))
	f, plain = startSocket(t, Config{Source: source.Dir{Path: dir}, TLS: TLS{
		Certificate: filepath.Join(s.dir, "tls.crt"), Key: filepath.Join(s.dir, "tls.key"), Address: "127.0.0.1:0", Interval: 5 * time.Millisecond,
	}})
	f.waitLoaded(t)
	return f, plain, f.TLSAddress().String()
}

func inPlainText(t *testing.T, address string) api.RegistryClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return api.NewRegistryClient(conn)
}

// TestTwoPorts checks that each port speaks its protocol only, and that both share the limit of connections.
func TestTwoPorts(t *testing.T) {
	a := newAuthority(t)
	certificate, key := a.sign(t)
	s := &secret{dir: t.TempDir()}
	s.write(t, map[string][]byte{"tls.crt": certificate, "tls.key": key})
	f, plain, secured := startTwoPorts(t, s)
	config := &tls.Config{RootCAs: a.pool()}
	for name, tt := range map[string]struct {
		client api.RegistryClient
		fails  bool
	}{
		"plain text":             {client: inPlainText(t, plain)},
		"TLS":                    {client: encrypted(t, secured, config)},
		"plain text to TLS":      {client: inPlainText(t, secured), fails: true},
		"TLS to the plain port":  {client: encrypted(t, plain, config), fails: true},
		"TLS, unknown authority": {client: encrypted(t, secured, &tls.Config{RootCAs: newAuthority(t).pool()}), fails: true},
	} {
		if _, err := tt.client.GetPackage(t.Context(), &api.GetPackageRequest{Name: "p"}); (err != nil) != tt.fails {
			t.Errorf("%s: got %v", name, err)
		}
	}
	wait(t, "the connections of both ports to be counted", func() bool { return value(t, f.metrics.connections) >= 2 })
	f.stop()
	if err := <-f.done; err != nil {
		t.Error(err)
	}
	f.done <- nil
	for _, address := range []string{plain, secured} {
		if conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address); err == nil {
			conn.Close()
			t.Errorf("%s is still open", address)
		}
	}
}

// TestRotation replaces the certificate twice, the second time with its authority, while clients call over connections
// that last and over new ones. Clients trust the new authority before it is used. No call fails.
func TestRotation(t *testing.T) {
	first, second := newAuthority(t), newAuthority(t)
	s := &secret{dir: t.TempDir()}
	replace := func(a *authority) {
		t.Helper()
		certificate, key := a.sign(t)
		s.write(t, map[string][]byte{"tls.crt": certificate, "tls.key": key})
	}
	replace(first)
	_, _, secured := startTwoPorts(t, s)
	trusted := &atomic.Pointer[x509.CertPool]{}
	trusted.Store(first.pool())
	config := func() *tls.Config { return &tls.Config{RootCAs: trusted.Load(), NextProtos: []string{"h2"}} }
	serial := func() int64 {
		conn, err := (&tls.Dialer{Config: config()}).DialContext(t.Context(), "tcp", secured)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	lasting := encrypted(t, secured, config())
	var overLasting, overNew atomic.Int64 // calls
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	load := func(calls *atomic.Int64, call func() error) {
		running.Go(func() {
			for ctx.Err() == nil {
				if err := call(); err != nil {
					t.Errorf("a call failed: %v", err)
					return
				}
				calls.Add(1)
			}
		})
	}
	call := func(client api.RegistryClient) error {
		_, err := client.GetPackage(context.WithoutCancel(ctx), &api.GetPackageRequest{Name: "p"})
		return err
	}
	load(&overLasting, func() error { return call(lasting) })
	load(&overNew, func() error {
		conn, err := grpc.NewClient("passthrough:///"+secured, grpc.WithTransportCredentials(credentials.NewTLS(config())))
		if err != nil {
			return err
		}
		defer conn.Close()
		return call(api.NewRegistryClient(conn))
	})
	more := func() {
		t.Helper()
		before, beforeNew := overLasting.Load(), overNew.Load()
		wait(t, "more calls", func() bool { return overLasting.Load() > before+20 && overNew.Load() > beforeNew+5 })
	}
	more()
	replace(first)
	wait(t, "the second certificate", func() bool { return serial() == first.serial })
	more()
	both := first.pool()
	both.AddCert(second.certificate)
	trusted.Store(both)
	more()
	second.serial += 100
	replace(second)
	wait(t, "the certificate of the second authority", func() bool { return serial() == second.serial })
	more()
	trusted.Store(second.pool())
	more()
	stop()
	running.Wait()
}
