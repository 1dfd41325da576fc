package disconnected_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	registry "github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/webhook"
	"github.com/chandlery/chandlery/test/failover"
	"github.com/chandlery/chandlery/test/pause"
)

const (
	secured = "secured"
	// securedReplicas is the number of replicas that the client calls.
	securedReplicas = 2
	// rotations is the number of new certificates while the client calls.
	rotations = 2
	// reading is how often the client reads the authorities, and pace the time between two calls of a replica.
	reading = time.Second
	pace    = 50 * time.Millisecond
)

// TestCertificatesOfReplicas rotates the certificate of a hosted catalog and its authority twice. A client that reads the
// authorities from the ConfigMap calls both replicas all the time, by new connections and a lasting one. No call fails. The supervisor uses TLS too.
func TestCertificatesOfReplicas(t *testing.T) {
	s := newScene(t)
	source := s.hosted(secured, securedReplicas)
	source.Annotations[api.AnnotationServeTLS] = "true"
	s.create(source)
	s.ready(secured)

	served := securedCatalog{s}
	served.connected()
	c := s.callReplicas()
	first := served.serial()
	c.everyReplicaShows(first)
	serials := map[string]bool{first: true}
	for range rotations {
		served.stageSuccessor()
		supervisors{s}.replace() // The next leader checks the certificates of all catalogs.
		var next string
		s.eventually("the next certificate", func() string {
			if next = served.serial(); serials[next] {
				return "the Secret has the old one"
			}
			return ""
		})
		serials[next] = true
		c.everyReplicaShows(next)
		served.connected()
	}
	calls := c.stop()
	t.Logf("%d calls, and certificates %v", calls, serials)
	if limit := 1000; calls < limit {
		t.Errorf("only %d calls, want at least %d", calls, limit)
	}
}

// securedCatalog is the hosted catalog with TLS.
type securedCatalog struct{ *scene }

// connected waits until the supervisor reads the catalog by TLS.
func (s securedCatalog) connected() {
	s.t.Helper()
	s.ready(secured)
	s.eventually("the supervisor to use TLS", func() string {
		source := &operatorsv1alpha1.CatalogSource{}
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: failover.CatalogNamespace, Name: secured}, source); err != nil {
			return err.Error()
		}
		if !apimeta.IsStatusConditionTrue(source.Status.Conditions, api.ConditionConnectionSecured) {
			return fmt.Sprintf("%+v", source.Status.Conditions)
		}
		return ""
	})
}

// certificate returns the Secret with the certificate of the catalog, and the certificate.
func (s securedCatalog) certificate() (*corev1.Secret, *webhook.Certificate) {
	s.t.Helper()
	secret := &corev1.Secret{}
	s.eventually("the certificate", func() string {
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: failover.CatalogNamespace, Name: secured + "-catalog-cert"}, secret); err != nil {
			return err.Error()
		}
		return ""
	})
	certificate, err := webhook.FromSecret(secret)
	must(s.t, err)
	return secret, certificate
}

// serial returns the serial number of the certificate in the Secret.
func (s securedCatalog) serial() string {
	s.t.Helper()
	_, certificate := s.certificate()
	pair, err := tls.X509KeyPair(certificate.Cert, certificate.Key)
	must(s.t, err)
	return pair.Leaf.SerialNumber.String()
}

// stageSuccessor adds a successor to the certificate, as the supervisor does a month before its end, and publishes its
// authority. The successor is a day old, so that the supervisor uses it at the next check.
func (s securedCatalog) stageSuccessor() {
	s.t.Helper()
	secret, certificate := s.certificate()
	server := webhook.Server{Deployment: secured, Service: secured}
	next, err := webhook.Issue(server, failover.CatalogNamespace, time.Now().Add(-25*time.Hour))
	must(s.t, err)
	certificate.Next = next
	secret.Data = certificate.Data()
	must(s.t, s.Update(s.t.Context(), secret))
	authorities := &corev1.ConfigMap{}
	must(s.t, s.Get(s.t.Context(), client.ObjectKey{Namespace: failover.CatalogNamespace, Name: secured + "-catalog-ca"}, authorities))
	authorities.Data = map[string]string{"ca.crt": string(certificate.Bundle())}
	must(s.t, s.Update(s.t.Context(), authorities))
}

// replicaClient calls the replicas of a catalog until it is stopped.
type replicaClient struct {
	s     *scene
	end   context.CancelFunc
	tasks sync.WaitGroup

	mu    sync.Mutex
	roots *x509.CertPool
	calls int
	// shown are the serial numbers of the certificates in the latest new connection to each replica.
	shown map[string]string
}

// callReplicas starts a client.
func (s *scene) callReplicas() *replicaClient {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	c := &replicaClient{s: s, end: cancel, shown: map[string]string{}}
	s.t.Cleanup(func() { c.stop() })
	s.eventually("the authorities", func() string { return message(c.readAuthorities(ctx)) })
	c.repeat(ctx, reading, c.readAuthorities)
	for _, address := range s.replicaAddresses() {
		lasting, err := c.connect(address)
		must(s.t, err)
		s.t.Cleanup(func() { _ = lasting.Close() })
		c.repeat(ctx, pace, func(ctx context.Context) error { return c.call(ctx, lasting, "") })
		c.repeat(ctx, pace, func(ctx context.Context) error {
			fresh, err := c.connect(address)
			if err != nil {
				return err
			}
			return errors.Join(c.call(ctx, fresh, address), fresh.Close())
		})
	}
	return c
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// replicaAddresses returns the addresses of the replicas with TLS.
func (s *scene) replicaAddresses() []string {
	s.t.Helper()
	var all []string
	s.eventually("the replicas", func() string {
		all = nil
		var pods corev1.PodList
		if err := s.List(s.t.Context(), &pods, client.InNamespace(failover.CatalogNamespace), client.MatchingLabels{api.LabelCatalogSource: secured}); err != nil {
			return err.Error()
		}
		for i := range pods.Items {
			if isReady(&pods.Items[i]) {
				all = append(all, net.JoinHostPort(pods.Items[i].Status.PodIP, strconv.Itoa(catalogs.PortTLS)))
			}
		}
		if len(all) != securedReplicas || len(pods.Items) != securedReplicas {
			return fmt.Sprintf("%d of %d replicas are ready", len(all), len(pods.Items))
		}
		return ""
	})
	return all
}

// repeat runs a function at intervals until ctx ends. Its errors fail the test.
func (c *replicaClient) repeat(ctx context.Context, every time.Duration, run func(context.Context) error) {
	c.tasks.Go(func() {
		for {
			// A call in progress at the end may still succeed.
			limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			if err := run(limited); err != nil {
				c.s.t.Error(err)
			}
			cancel()
			if !pause.For(ctx, every) {
				return
			}
		}
	})
}

// readAuthorities reads the authorities from the ConfigMap.
func (c *replicaClient) readAuthorities(ctx context.Context) error {
	published := &corev1.ConfigMap{}
	if err := c.s.Get(ctx, client.ObjectKey{Namespace: failover.CatalogNamespace, Name: secured + "-catalog-ca"}, published); err != nil {
		return fmt.Errorf("reading the authorities: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(published.Data["ca.crt"])) {
		return fmt.Errorf("the ConfigMap has no authority: %v", published.Data)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.roots = roots
	return nil
}

// connect prepares a connection. Each handshake trusts the authorities read last.
func (c *replicaClient) connect(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		InsecureSkipVerify: true, // VerifyConnection replaces it
		VerifyConnection:   c.verify, ServerName: secured + "." + failover.CatalogNamespace + ".svc", MinVersion: tls.VersionTLS12,
	})))
}

// verify checks the certificate of a server.
func (c *replicaClient) verify(state tls.ConnectionState) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{DNSName: state.ServerName, Roots: c.roots})
	return err
}

// call lists the packages. It records the certificate of a replica, unless that is empty.
func (c *replicaClient) call(ctx context.Context, conn *grpc.ClientConn, replica string) error {
	stream, err := registry.NewRegistryClient(conn).ListPackages(ctx, &registry.ListPackageRequest{})
	if err != nil {
		return fmt.Errorf("calling %s: %w", conn.Target(), err)
	}
	if _, err := stream.Recv(); err != nil {
		return fmt.Errorf("calling %s: %w", conn.Target(), err)
	}
	server, _ := peer.FromContext(stream.Context()) //nolint:contextcheck // the stream has the address of its server
	info, ok := server.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return fmt.Errorf("calling %s: the connection is not secured", conn.Target())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	if replica != "" {
		c.shown[replica] = info.State.PeerCertificates[0].SerialNumber.String()
	}
	return nil
}

// everyReplicaShows waits until all replicas use a certificate. The kubelet updates its files within two minutes.
func (c *replicaClient) everyReplicaShows(serial string) {
	c.s.t.Helper()
	c.s.eventually("all replicas to use certificate "+serial, func() string {
		c.mu.Lock()
		defer c.mu.Unlock()
		for replica, shown := range c.shown {
			if shown != serial {
				return replica + " uses " + shown
			}
		}
		if len(c.shown) != securedReplicas {
			return fmt.Sprintf("%d replicas were called", len(c.shown))
		}
		return ""
	})
}

// stop ends the calls and returns their number.
func (c *replicaClient) stop() int {
	c.end()
	c.tasks.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}
