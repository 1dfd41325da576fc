package suite_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	registryapi "github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/certificates"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/testenv"
)

// securedRegistry is "registry serve" with TLS.
type securedRegistry struct {
	t                *testing.T
	program, address string
	// dir has the catalog, and certificate and key are its files.
	dir, certificate, key string
	running               *process.Process
}

// newSecuredRegistry serves packages with a certificate.
func newSecuredRegistry(t *testing.T, pair certificates.Pair, packages ...fakecatalog.Package) *securedRegistry {
	t.Helper()
	files := t.TempDir()
	r := &securedRegistry{
		t: t, program: programs.Registry(t), address: ports.Address(t), dir: t.TempDir(),
		certificate: filepath.Join(files, "tls.crt"), key: filepath.Join(files, "tls.key"),
	}
	var text []byte
	for _, p := range packages {
		text = append(text, contentOf(t, p)...)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "catalog.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	r.renew(pair)
	r.start()
	return r
}

// contentOf returns a package in the format of files.
func contentOf(t *testing.T, p fakecatalog.Package) []byte {
	t.Helper()
	type object map[string]any
	all := []object{{"schema": "olm.package", "name": p.Name, "defaultChannel": p.Channels[0].Name}}
	for _, c := range p.Channels {
		var entries []object
		for _, e := range c.Entries {
			properties := []object{{"type": "olm.package", "value": object{"packageName": p.Name, "version": e.Version}}}
			for _, manifest := range e.Objects {
				properties = append(properties, object{"type": "olm.bundle.object", "value": object{"data": base64.StdEncoding.EncodeToString([]byte(manifest))}})
			}
			entries = append(entries, object{"name": e.Name, "replaces": e.Replaces})
			all = append(all, object{"schema": "olm.bundle", "package": p.Name, "name": e.Name, "properties": properties})
		}
		all = append(all, object{"schema": "olm.channel", "package": p.Name, "name": c.Name, "entries": entries})
	}
	var text []byte
	for _, one := range all {
		line, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, line...), '\n')
	}
	return text
}

// renew replaces the files with the certificate and its key, one after the other.
func (r *securedRegistry) renew(pair certificates.Pair) {
	r.t.Helper()
	if err := errors.Join(os.WriteFile(r.certificate, pair.Certificate, 0o600), os.WriteFile(r.key, pair.Key, 0o600)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *securedRegistry) start() {
	r.t.Helper()
	host, port, err := net.SplitHostPort(r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.running = programs.Start(r.t, "registry", r.program, "serve", r.dir, "--host", host, "--port", port, "--tls-cert", r.certificate, "--tls-key", r.key,
		"--metrics-address", "0", "--pprof-addr", "0", "--termination-log", "")
}

// restart closes all connections.
func (r *securedRegistry) restart() {
	r.t.Helper()
	if err := r.running.Stop(testenv.Patience); err != nil {
		r.t.Fatal(err)
	}
	r.start()
}

// callLoad calls a catalog without pause, in two ways: as the supervisor does, over its connection, and as a client with
// a new connection for each call.
type callLoad struct {
	*world

	registry *securedRegistry
	trusted  atomic.Pointer[x509.CertPool]
	// byStore and byClient count the calls of each way, and serial is that of the last certificate.
	byStore, byClient atomic.Int64
	serial            atomic.Pointer[string]
	begin             time.Time
	stopped           chan struct{}
	work              sync.WaitGroup

	mu     sync.Mutex
	errors []error
}

func newCallLoad(w *world, registry *securedRegistry, catalog string, trusted *x509.CertPool) *callLoad {
	w.T.Helper()
	l := &callLoad{world: w, registry: registry, begin: time.Now(), stopped: make(chan struct{})}
	l.trusted.Store(trusted)
	l.repeat(&l.byStore, func() error {
		_, err := w.contents.store.Bundle(w.T.Context(), types.NamespacedName{Namespace: w.Namespace, Name: catalog}, "lamp", "stable", "lamp.v1")
		return err
	})
	l.repeat(&l.byClient, l.connectAndCall)
	return l
}

// repeat calls until the end. It counts calls that succeed, and collects the errors of others.
func (l *callLoad) repeat(counter *atomic.Int64, call func() error) {
	l.work.Go(func() {
		for {
			select {
			case <-l.stopped:
				return
			default:
			}
			if err := call(); err != nil {
				l.mu.Lock()
				l.errors = append(l.errors, fmt.Errorf("after %s: %w", time.Since(l.begin), err))
				l.mu.Unlock()
				return
			}
			counter.Add(1)
		}
	})
}

// connectAndCall calls over a connection of its own.
func (l *callLoad) connectAndCall() error {
	conn, err := grpc.NewClient("passthrough:///"+l.registry.address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: l.trusted.Load(),
	})))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(l.T.Context(), testenv.Patience)
	defer cancel()
	var server peer.Peer
	request := &registryapi.GetBundleRequest{PkgName: "lamp", ChannelName: "stable", CsvName: "lamp.v1"}
	if _, err := registryapi.NewRegistryClient(conn).GetBundle(ctx, request, grpc.Peer(&server)); err != nil {
		return err
	}
	info, isTLS := server.AuthInfo.(credentials.TLSInfo)
	if !isTLS {
		return fmt.Errorf("the connection has %T instead of TLS", server.AuthInfo)
	}
	l.serial.Store(new(info.State.PeerCertificates[0].SerialNumber.String()))
	return nil
}

// goesOn waits until new connections have a certificate, and for more calls.
func (l *callLoad) goesOn(pair certificates.Pair) {
	l.T.Helper()
	want := pair.TLS(l.T).Leaf.SerialNumber.String()
	const more = 20
	var ended bool
	byStore, byClient := l.byStore.Load(), l.byClient.Load()
	l.Eventually(func() bool {
		l.mu.Lock()
		ended = len(l.errors) > 0
		l.mu.Unlock()
		serial := l.serial.Load()
		return ended || serial != nil && *serial == want && l.byStore.Load() >= byStore+more && l.byClient.Load() >= byClient+more
	}).Should(gomega.BeTrue())
	if ended {
		l.T.Fatal(errors.Join(l.errors...))
	}
}

// end ends the calls after a minimum duration.
func (l *callLoad) end(minimum time.Duration) {
	l.T.Helper()
	l.Eventually(func() bool { return time.Since(l.begin) >= minimum }).WithTimeout(minimum + testenv.Patience).Should(gomega.BeTrue())
	close(l.stopped)
	l.work.Wait()
	if len(l.errors) > 0 {
		l.T.Error(errors.Join(l.errors...))
	}
	l.T.Logf("%d calls over the connection of the supervisor and %d over connections of their own, in %s", l.byStore.Load(), l.byClient.Load(), time.Since(l.begin))
}

// TestCatalogWithTLS resolves Subscriptions from "registry serve" with TLS. During calls, its certificate is renewed, and
// then its authority, which clients trust before the server uses it.
func TestCatalogWithTLS(t *testing.T) {
	minimum, err := time.ParseDuration(cmp.Or(os.Getenv("LOAD"), "0s"))
	if err != nil {
		t.Fatalf("LOAD: %v", err)
	}
	w := newWorld(t)
	first, second := certificates.NewAuthority(t, "first"), certificates.NewAuthority(t, "second")
	pair := first.Sign(t, certificates.Request{})
	registry := newSecuredRegistry(t, pair, w.lamp(1), renamed(w.lamp(1), "torch"))
	source := w.catalog("secured", registry.address)
	source.SetAnnotations(map[string]string{api.AnnotationTLS: "secret/authorities"})
	authorities := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "authorities"}, Data: map[string][]byte{"ca.crt": first.PEM}}
	from := func(spec *operatorsv1alpha1.SubscriptionSpec) { spec.CatalogSource = "secured" }
	w.Create(authorities, source, w.subscription("my-lamp", "lamp", from))
	w.supervise()
	w.succeed("lamp.v1")
	w.settled("my-lamp", "lamp.v1")

	load := newCallLoad(w, registry, "secured", first.Pool())
	load.goesOn(pair)
	pair = first.Sign(t, certificates.Request{})
	registry.renew(pair)
	load.goesOn(pair)

	trust := func(all ...*certificates.Authority) {
		t.Helper()
		pool, text := x509.NewCertPool(), []byte{}
		for _, one := range all {
			text = append(text, one.PEM...)
		}
		pool.AppendCertsFromPEM(text)
		w.Modify(authorities, func() { authorities.Data["ca.crt"] = text })
		load.trusted.Store(pool)
	}
	trust(first, second)
	load.goesOn(pair)
	pair = second.Sign(t, certificates.Request{})
	registry.renew(pair)
	load.goesOn(pair)
	trust(second)
	load.goesOn(pair)
	load.end(minimum)

	// A new connection of the supervisor uses what is in place now.
	registry.restart()
	w.Create(w.subscription("my-torch", "torch", from))
	w.succeed("torch.v1")
	w.settled("my-torch", "torch.v1")
}
