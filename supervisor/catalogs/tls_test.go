package catalogs_test

import (
	"crypto/tls"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"google.golang.org/grpc/connectivity"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialproxy"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
	"github.com/chandlery/chandlery/test/certificates"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/webproxy"
)

// trusting returns the Security of a CatalogSource that trusts some authorities.
func trusting(t *testing.T, pem []byte) dialtls.Security {
	t.Helper()
	s := dialtls.Security{Settings: dialtls.Settings{Enabled: true, CA: dialtls.Source{Kind: "ConfigMap", Name: "ca", Key: "ca.crt"}}}
	s.Material, s.Problem = dialtls.NewMaterial(s.Settings, dialtls.Input{CA: pem})
	return s
}

// secured starts a catalog with a certificate that can be replaced.
func secured(t *testing.T, a *certificates.Authority) (*fakecatalog.Server, *atomic.Pointer[tls.Certificate]) {
	t.Helper()
	current := &atomic.Pointer[tls.Certificate]{}
	current.Store(new(a.Sign(t, certificates.Request{}).TLS(t)))
	server := fakecatalog.StartExtended(t, lamp("{}"))
	server.Stop()
	server.Secure(&tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return current.Load(), nil },
	})
	server.Restart()
	return server, current
}

func (b *bench) followSecured(t *testing.T, address string, security dialtls.Security) {
	t.Helper()
	if err := b.store.Follow(shop, address, security); err != nil {
		t.Fatal(err)
	}
}

// failsWith waits until the state has a failure of TLS.
func (b *bench) failsWith(t *testing.T, reason dialtls.Reason) catalogs.State {
	t.Helper()
	return b.becomes(t, string(reason), func(s catalogs.State) bool {
		failure, is := errors.AsType[*dialtls.Error](s.Err)
		return is && failure.Reason == reason && s.Connectivity == connectivity.TransientFailure.String()
	})
}

// TestStoreSecuresConnections replaces the authority of a catalog and of its client one after the other.
func TestStoreSecuresConnections(t *testing.T) {
	ours, theirs := certificates.NewAuthority(t, "ours"), certificates.NewAuthority(t, "theirs")
	server, current := secured(t, ours)
	b := newBench(t)

	// A catalog without certificates is not reached in plain text, and tells why.
	missing := dialtls.Security{Settings: trusting(t, ours.PEM).Settings, Problem: &dialtls.Error{Reason: dialtls.CANotFound, Text: "ConfigMap ca does not exist"}}
	b.followSecured(t, server.Address(), missing)
	b.failsWith(t, dialtls.CANotFound)
	if server.Asked() != 0 {
		t.Error("the catalog was asked without certificates")
	}
	b.followSecured(t, server.Address(), trusting(t, theirs.PEM))
	b.failsWith(t, dialtls.UnknownAuthority)
	b.followSecured(t, server.Address(), trusting(t, ours.PEM))
	b.ready(t)

	// The catalog gets a certificate of another authority. The connection stays until it is lost.
	current.Store(new(theirs.Sign(t, certificates.Request{}).TLS(t)))
	b.Consistently(func() bool { state, _ := b.store.State(shop); return state.Ready() }).WithTimeout(3 * refresh).Should(gomega.BeTrue())
	server.Stop()
	server.Restart()
	if state := b.failsWith(t, dialtls.UnknownAuthority); state.Snapshot == nil {
		t.Error("the last known content is lost")
	}
	b.followSecured(t, server.Address(), trusting(t, append(append([]byte{}, ours.PEM...), theirs.PEM...)))
	b.ready(t)

	// A broken list leaves the former one in use.
	broken := trusting(t, []byte("broken"))
	if broken.Problem == nil || broken.Problem.Reason != dialtls.CAInvalid {
		t.Fatalf("problem is %v", broken.Problem)
	}
	b.followSecured(t, server.Address(), broken)
	if state, _ := b.store.State(shop); !state.Ready() || state.TLS.Problem == nil || !state.TLS.InUse {
		t.Errorf("state is %s, %+v", state.Connectivity, state.TLS)
	}

	// Without TLS, the failure says so.
	b.follow(t, server.Address())
	b.failsWith(t, dialtls.ServerExpectsTLS)
}

// TestTLSThroughProxy follows a catalog outside the cluster, whose name only the proxy knows (scenario 33).
func TestTLSThroughProxy(t *testing.T) {
	ours := certificates.NewAuthority(t, "ours")
	server, current := secured(t, ours)
	current.Store(new(ours.Sign(t, certificates.Request{Hosts: []string{"cat.test"}}).TLS(t)))
	proxy := webproxy.New(t, webproxy.Options{Hosts: map[string]string{"cat.test:443": server.Address()}})
	b := newBench(t)
	b.store.Proxies = dialproxy.Environment{HTTPS: proxy.Address}
	b.followSecured(t, "cat.test:443", trusting(t, ours.PEM))
	b.ready(t)
	if asked := proxy.Asked(); !slices.Equal(asked, []string{"CONNECT cat.test:443"}) {
		t.Errorf("the proxy was asked for %q", asked)
	}
}

// TestRotationInterruptsNoCall reads a bundle without pause while the certificates of both sides are replaced twice:
// the server's alone, and then its authority, which the client trusts before.
func TestRotationInterruptsNoCall(t *testing.T) {
	first, second := certificates.NewAuthority(t, "first"), certificates.NewAuthority(t, "second")
	server, current := secured(t, first)
	b := newBench(t)
	b.followSecured(t, server.Address(), trusting(t, first.PEM))
	b.ready(t)
	stop, ended := make(chan struct{}), make(chan error, 1)
	var calls atomic.Int64
	go func() {
		for {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			if _, err := b.store.Bundle(t.Context(), shop, "lamp", "stable", "lamp.v1"); err != nil {
				ended <- err
				return
			}
			calls.Add(1)
		}
	}()
	more := func() {
		t.Helper()
		before := calls.Load()
		b.Eventually(func() int64 { return calls.Load() - before }).WithTimeout(patience).WithPolling(time.Millisecond).Should(gomega.BeNumerically(">", 20))
	}
	more()
	current.Store(new(first.Sign(t, certificates.Request{}).TLS(t)))
	more()
	b.followSecured(t, server.Address(), trusting(t, append(append([]byte{}, first.PEM...), second.PEM...)))
	more()
	current.Store(new(second.Sign(t, certificates.Request{}).TLS(t)))
	more()
	b.followSecured(t, server.Address(), trusting(t, second.PEM))
	more()
	close(stop)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	// New connections use what is in place now.
	server.Stop()
	server.Restart()
	b.ready(t)
}

// TestReplicasWithTLS has one replica with TLS and one in plain text, as during the rollout that adds TLS. The certificate of
// the first and its authority are replaced while it is called.
func TestReplicasWithTLS(t *testing.T) {
	ours, theirs := certificates.NewAuthority(t, "ours"), certificates.NewAuthority(t, "theirs")
	server, current := secured(t, ours)
	plain := fakecatalog.StartExtended(t, lamp("{}"))
	b := newBench(t)
	follow := func(authorities []byte, servers ...*fakecatalog.Server) {
		t.Helper()
		security := dialtls.Security{Settings: dialtls.Settings{Enabled: true, CA: dialtls.Source{Kind: "ConfigMap", Name: "shop-catalog-ca", Key: "ca.crt"}, ServerName: "127.0.0.1"}}
		security.Material, security.Problem = dialtls.NewMaterial(security.Settings, dialtls.Input{CA: authorities})
		var endpoints []replicas.Endpoint
		for _, one := range servers {
			endpoints = append(endpoints, replicas.Endpoint{
				Address: one.Address(), Ready: true, Secured: one == server,
				Pod: types.NamespacedName{Namespace: shop.Namespace, Name: "shop-" + one.Address()}, UID: types.UID(one.Address()),
			})
		}
		if err := b.store.FollowReplicas(shop, "shop.olm.svc:50051", security, endpoints); err != nil {
			t.Fatal(err)
		}
	}
	encrypted := func(want bool) {
		t.Helper()
		if state, _ := b.store.State(shop); state.TLS.Encrypted != want {
			t.Errorf("TLS is %+v, want %v", state.TLS, want)
		}
	}

	follow(theirs.PEM, server)
	b.becomes(t, "untrusted", func(s catalogs.State) bool {
		return s.TLS.Failure != nil && s.TLS.Failure.Reason == dialtls.UnknownAuthority
	})
	if server.Asked() != 0 {
		t.Error("a replica was asked that is not trusted")
	}
	follow(ours.PEM, plain)
	b.serving(1)
	encrypted(false)
	follow(ours.PEM, plain, server)
	b.serving(2)
	encrypted(false)
	follow(ours.PEM, server)
	b.serving(1)
	b.ready(t)
	encrypted(true)

	// A new authority is published before its use, and the old one is removed afterwards.
	both := append(append([]byte{}, ours.PEM...), theirs.PEM...)
	follow(both, server)
	current.Store(new(theirs.Sign(t, certificates.Request{}).TLS(t)))
	follow(theirs.PEM, server)
	b.Consistently(func() bool { state, _ := b.store.State(shop); return state.Ready() }).WithTimeout(3 * refresh).Should(gomega.BeTrue())
	server.Stop()
	server.Restart()
	b.serving(1)
	b.ready(t)
	encrypted(true)
}
