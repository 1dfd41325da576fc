package suite_test

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/connectivity"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/certificates"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
	"github.com/chandlery/chandlery/test/webproxy"
)

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, controlplane.Options{Nodes: 1}, testenv.InstallCRDs))
}

// world is a cluster with a supervisor.
type world struct {
	*testenv.World

	metrics string
}

func (w *world) eventually(what string, is func(context.Context) bool) {
	w.T.Helper()
	w.Eventually(func() bool { return is(w.T.Context()) }).Should(gomega.BeTrue(), what)
}

// has waits until the operator's container has proxies.
func (w *world) has(what string, env ...corev1.EnvVar) {
	w.T.Helper()
	w.eventually(what, func(ctx context.Context) bool {
		d := &appsv1.Deployment{}
		if err := w.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: "kettle"}, d); err != nil {
			return false
		}
		have := slices.DeleteFunc(d.Spec.Template.Spec.Containers[0].Env, func(e corev1.EnvVar) bool { return !strings.HasSuffix(e.Name, "_PROXY") })
		return slices.Equal(have, env)
	})
}

// shows waits until the metrics of the supervisor have a sample.
func (w *world) shows(sample string) {
	w.T.Helper()
	w.eventually("there is the sample "+sample, func(ctx context.Context) bool {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.metrics+"/metrics", http.NoBody)
		if err != nil {
			return false
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return err == nil && strings.Contains(string(body), sample+"\n")
	})
}

// runRegistry runs a registry with the image shop:v1 and a certificate for source.test. It returns its address, and the
// digest of the image.
func runRegistry(t *testing.T, authority *certificates.Authority) (address, digest string) {
	t.Helper()
	server := httptest.NewUnstartedServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	server.TLS = authority.Sign(t, certificates.Request{Hosts: []string{"source.test", "127.0.0.1"}}).Server(t)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	address = server.Listener.Addr().String()
	ref, err := name.ParseReference(address + "/shop:v1")
	if err != nil {
		t.Fatal(err)
	}
	img, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	transport := server.Client().Transport.(*http.Transport).Clone() //nolint:forcetypeassert // httptest has no other
	transport.TLSClientConfig.RootCAs = authority.Pool()
	defer transport.CloseIdleConnections()
	if err := remote.Write(ref, img, remote.WithTransport(transport)); err != nil {
		t.Fatal(err)
	}
	sum, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return address, sum.String()
}

// TestProxies runs a supervisor with a proxy for image registries and a ConfigMap with the proxies of operators. It is
// one test because controller names allow one supervisor per process.
func TestProxies(t *testing.T) {
	w := &world{testenv.New(t), ports.Address(t)}
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
	authority := certificates.NewAuthority(t, "ours")
	address, digest := runRegistry(t, authority)
	proxy := webproxy.New(t, webproxy.Options{Hosts: map[string]string{"source.test:443": address}})
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, authority.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	o := supervisor.Options{}
	flags := pflag.NewFlagSet("supervisor", pflag.ContinueOnError)
	o.AddFlags(flags)
	if err := flags.Parse([]string{
		"--leader-election-namespace=" + w.Namespace, "--metrics-address=" + w.metrics, "--health-address=0",
		"--bundle-cache-dir=" + t.TempDir(), "--catalog-cache-dir=", "--catalog-refresh-interval=1s",
		"--image-ca=" + ca, "--image-proxy=http://" + proxy.Address, "--operator-proxy=" + w.Namespace + "/proxy",
	}); err != nil {
		t.Fatal(err)
	}
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	w.Run(func(ctx context.Context) error { return supervisor.Run(ctx, w.Config, o) })
	w.imagesAlone(proxy, digest)
	w.operators()
}

// imagesAlone checks that only image registries are reached through --image-proxy (scenario 35).
func (w *world) imagesAlone(proxy *webproxy.Proxy, digest string) {
	w.T.Helper()
	catalog := func(name string, spec operatorsv1alpha1.CatalogSourceSpec) *operatorsv1alpha1.CatalogSource {
		spec.SourceType = operatorsv1alpha1.SourceTypeGrpc
		return &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}, Spec: spec}
	}
	away := catalog("away", operatorsv1alpha1.CatalogSourceSpec{Address: "cat.test:50051"})
	w.Create(away, catalog("shop", operatorsv1alpha1.CatalogSourceSpec{Image: "source.test/shop:v1"}))
	w.eventually("the catalog runs the digest", func(ctx context.Context) bool {
		d := &appsv1.Deployment{}
		err := w.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: "shop"}, d)
		return err == nil && d.Annotations[api.AnnotationImageDigest] == digest
	})
	w.eventually("the other catalog was dialled", func(ctx context.Context) bool {
		err := w.Get(ctx, client.ObjectKeyFromObject(away), away)
		state := away.Status.GRPCConnectionState
		return err == nil && state != nil && state.LastObservedState == connectivity.TransientFailure.String()
	})
	if asked := proxy.Asked(); !slices.Equal(asked, []string{"CONNECT source.test:443"}) {
		w.T.Errorf("the proxy was asked for %q", asked)
	}
}

// operators checks the proxies of an operator while their ConfigMap is missing, appears, becomes invalid and changes.
func (w *world) operators() {
	w.T.Helper()
	csv := fixtures.Kettle(w.Namespace, "kettle.v1", operatorsv1alpha1.InstallModeTypeAllNamespaces)
	w.Create(fixtures.OperatorGroup(w.Namespace, "all"), csv)
	w.eventually("the version names the missing ConfigMap", func(ctx context.Context) bool {
		if w.Get(ctx, client.ObjectKeyFromObject(csv), csv) != nil {
			return false
		}
		cause, _ := api.CauseOf(csv)
		return cause.Reason == api.ReasonProxiesUnknown &&
			strings.Contains(cause.Detail, "ConfigMap "+w.Namespace+"/proxy of --operator-proxy does not exist; create it")
	})
	w.shows("chandlery_operator_proxy_valid 0")
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "proxy"},
		Data:       map[string]string{"httpsProxy": "http://proxy.example.com:3128", "noProxy": "10.0.0.0/8"},
	}
	w.Create(config)
	first := []corev1.EnvVar{
		{Name: "HTTPS_PROXY", Value: "http://proxy.example.com:3128"}, {Name: "NO_PROXY", Value: "10.0.0.0/8,10.96.0.1,.svc,.cluster.local"},
	}
	w.has("the proxy", first...)
	w.shows("chandlery_operator_proxy_valid 1")

	data := func(text string) {
		w.T.Helper()
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"data": `+text+`}`))
		w.Expect(w.Patch(w.T.Context(), config, patch)).To(gomega.Succeed())
	}
	data(`{"httpsProxy": "proxy.example.com:3128"}`)
	w.shows("chandlery_operator_proxy_valid 0")
	w.has("the last valid proxy", first...)
	data(`{"httpsProxy": null, "noProxy": null, "httpProxy": "http://other.example.com"}`)
	w.has("the other proxy", corev1.EnvVar{Name: "HTTP_PROXY", Value: "http://other.example.com"},
		corev1.EnvVar{Name: "NO_PROXY", Value: "10.96.0.1,.svc,.cluster.local"})
	data(`null`)
	w.has("no proxy")
}
