package compat_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/ports"
)

// apiServer serves the API of a version in place of its simulated pods, with the certificate in its Secret.
type apiServer struct {
	address     *net.TCPAddr
	certificate atomic.Pointer[tls.Certificate]
	// unlisted is true while discovery does not list the kind Hat.
	unlisted atomic.Bool
}

// newAPIServer starts a server. It skips the case if pods of the cluster are not simulated.
func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	compattest.NeedsSimulatedPods(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", net.JoinHostPort(ports.MachineAddress(t), "0"))
	if err != nil {
		t.Fatal(err)
	}
	s := &apiServer{address: listener.Addr().(*net.TCPAddr)} //nolint:forcetypeassert // it is one
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		group, version, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/apis/"), "/")
		w.Header().Set("Content-Type", "application/json")
		list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: group + "/" + version}
		if list.APIResources = []metav1.APIResource{}; !s.unlisted.Load() {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: "hats", Kind: "Hat", Namespaced: true, Verbs: metav1.Verbs{"get", "list"}})
		}
		_ = json.NewEncoder(w).Encode(list)
	}))
	_ = server.Listener.Close()
	server.Listener = listener
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	// Until the Secret exists, the server uses a certificate of its own.
	server.TLS = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.certificate.Load(), nil }}
	server.StartTLS()
	t.Cleanup(server.Close)
	return s
}

// port sets the port of a version's APIs.
func (s *apiServer) port(csv *operatorsv1alpha1.ClusterServiceVersion) {
	for i := range csv.Spec.APIServiceDefinitions.Owned {
		csv.Spec.APIServiceDefinitions.Owned[i].ContainerPort = int32(s.address.Port)
	}
}

// join gives the pods of version hat.v1 the address of the server, and the server their certificate, until the test ends.
func (s *apiServer) join(t *testing.T, c *compattest.Cluster) {
	t.Helper()
	go func() {
		for pause.For(t.Context(), 200*time.Millisecond) {
			s.update(t.Context(), c)
		}
	}()
}

func (s *apiServer) update(ctx context.Context, c *compattest.Cluster) {
	var secret corev1.Secret
	if c.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: "hat-v1-service-cert"}, &secret) == nil {
		if pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"]); err == nil {
			s.certificate.Store(&pair)
		}
	}
	var pods corev1.PodList
	if c.List(ctx, &pods, client.InNamespace(c.Namespace), client.MatchingLabels{"app": "hat-v1"}) != nil {
		return
	}
	ip := s.address.IP.String()
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Status.Phase == corev1.PodRunning && p.Status.PodIP != ip {
			// Another attempt follows.
			_ = c.Status().Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"status":{"podIP":"`+ip+`","podIPs":[{"ip":"`+ip+`"}]}}`)))
		}
	}
}

// behind makes the server the endpoint of a Service without a selector.
func (s *apiServer) behind(c *compattest.Cluster, service client.Object) {
	c.Make(&discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.GetNamespace(), Name: service.GetName(), Labels: map[string]string{discoveryv1.LabelServiceName: service.GetName()},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{s.address.IP.String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(s.address.Port)), Protocol: new(corev1.ProtocolTCP)}},
	})
}

// answers waits until the API server answers requests for an API.
func answers(t *testing.T, c *compattest.Cluster, limit time.Duration, group string) {
	t.Helper()
	c.Eventually(limit, func() string {
		if err := compattest.Request(t.Context(), "/apis/"+group+"/v1"); err != nil {
			return err.Error()
		}
		return ""
	})
}

// longestGap sends requests for an API until the returned function is called, which returns the longest time without an
// answer.
func longestGap(t *testing.T, group string) (stop func() time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan time.Duration, 1)
	go func() {
		var longest time.Duration
		for answered := time.Now(); pause.For(ctx, 100*time.Millisecond); {
			err := compattest.Request(ctx, "/apis/"+group+"/v1")
			if ctx.Err() == nil {
				longest = max(longest, time.Since(answered))
			}
			if err == nil {
				answered = time.Now()
			}
		}
		result <- longest
	}()
	return func() time.Duration {
		cancel()
		return <-result
	}
}

// revisionOf follows the objects of a name, and returns the resource version of the first event that matches; 0 if none
// did.
func revisionOf(t *testing.T, c *compattest.Cluster, list client.ObjectList, name string, matches func(watch.Event) bool) func() int {
	t.Helper()
	watcher, err := c.Watch(t.Context(), list, client.MatchingFields{"metadata.name": name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watcher.Stop)
	var found atomic.Int64
	go func() {
		for e := range watcher.ResultChan() {
			if o, is := e.Object.(client.Object); is && found.Load() == 0 && matches(e) {
				revision, _ := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
				found.Store(revision)
			}
		}
	}()
	return func() int { return int(found.Load()) }
}

// formerAPIService returns the APIService of a group as OLM's oldest releases created it.
func formerAPIService(namespace, group string, service client.Object) *unstructured.Unstructured {
	u := localAPIService(group, ownerLabelsOf(namespace, "hat.v1"))
	u.Object["spec"].(map[string]any)["insecureSkipTLSVerify"] = true //nolint:forcetypeassert // localAPIService sets it
	u.Object["spec"].(map[string]any)["service"] = map[string]any{    //nolint:forcetypeassert // localAPIService sets it
		"namespace": namespace, "name": service.GetName(), "port": int64(443),
	}
	return u
}
