package suite_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
	"github.com/chandlery/chandlery/test/controlplane"
)

const (
	// wait is how long an expected state may take.
	wait    = 60 * time.Second
	polling = 50 * time.Millisecond
	// quiet is how long a state must stay unchanged.
	quiet = 3 * time.Second
)

func TestMain(m *testing.M) {
	handler := slog.DiscardHandler
	if os.Getenv("CHANDLERY_TEST_LOGS") != "" {
		handler = slog.NewTextHandler(os.Stderr, nil)
	}
	logf.SetLogger(logr.FromSlogHandler(handler))
	os.Exit(controlplane.Main(m, controlplane.Options{}, func(ctx context.Context, cp *controlplane.ControlPlane) error {
		return supervisor.InstallCRDs(ctx, cp.Config(), io.Discard)
	}))
}

// world gives a test access to the cluster.
type world struct {
	client.Client
	*gomega.WithT

	t         *testing.T
	namespace string
	writes    *writes
	// configure changes how a supervisor connects to the API server; nil for no change.
	configure func(*rest.Config)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme, err := supervisor.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(controlplane.Get(t).Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return (&world{Client: c, namespace: controlplane.Namespace(t), writes: &writes{}}).in(t)
}

// in returns the world for a subtest.
func (w *world) in(t *testing.T) *world {
	t.Helper()
	g := gomega.NewWithT(t)
	g.SetDefaultEventuallyTimeout(wait)
	g.SetDefaultEventuallyPollingInterval(polling)
	g.SetDefaultConsistentlyDuration(quiet)
	g.SetDefaultConsistentlyPollingInterval(polling)
	return &world{Client: w.Client, WithT: g, t: t, namespace: w.namespace, writes: w.writes, configure: w.configure}
}

// writes records a supervisor's write requests and its list requests for autoscalers.
type writes struct {
	mu     sync.Mutex
	seen   []string
	looked []string
}

type counted struct {
	inner http.RoundTripper
	to    *writes
}

func (c counted) RoundTrip(req *http.Request) (*http.Response, error) {
	c.to.mu.Lock()
	switch {
	case req.Method != http.MethodGet:
		c.to.seen = append(c.to.seen, req.Method+" "+req.URL.Path)
	case strings.HasSuffix(req.URL.Path, "/horizontalpodautoscalers"):
		c.to.looked = append(c.to.looked, req.URL.Path)
	}
	c.to.mu.Unlock()
	return c.inner.RoundTrip(req)
}

// in returns the write requests in a namespace. Objects of other tests remain for the cleanup.
func (w *writes) in(namespace string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return inNamespace(w.seen, namespace)
}

// looksIn returns the number of list requests for autoscalers in a namespace.
func (w *writes) looksIn(namespace string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(inNamespace(w.looked, namespace))
}

func inNamespace(all []string, namespace string) []string {
	var found []string
	for _, one := range all {
		if strings.Contains(one, "/"+namespace+"/") {
			found = append(found, one)
		}
	}
	return found
}

// supervise runs the controller until the end of the test.
func (w *world) supervise(change ...func(*catalogsource.Config)) {
	w.t.Helper()
	cfg := controlplane.Get(w.t).Config()
	cfg.QPS, cfg.Burst = 1000, 1000
	cfg.Wrap(func(inner http.RoundTripper) http.RoundTripper { return counted{inner: inner, to: w.writes} })
	if w.configure != nil {
		w.configure(cfg)
	}
	scheme, err := supervisor.NewScheme()
	if err != nil {
		w.t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:     scheme,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	settings := catalogsource.Config{Settings: deployment.Settings{SetWorkloadUserID: true}, PlainHTTP: true}
	for _, c := range change {
		c(&settings)
	}
	ctx, cancel := context.WithCancel(context.Background())
	store := catalogs.NewStore(ctx, time.Second, clock.RealClock{})
	// The store follows nothing, because kwok's replicas do not answer.
	if err := catalogsource.Setup(mgr, catalogsource.Options{Store: store, Config: settings}); err != nil {
		w.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("the manager ended with: %v", err)
		}
	})
}

// create creates objects in the namespace of the test.
func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		o.SetNamespace(w.namespace)
		if err := w.Create(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
	}
}

// catalog returns a CatalogSource with an image.
func catalog(named, image string, change ...func(*operatorsv1alpha1.CatalogSource)) *operatorsv1alpha1.CatalogSource {
	source := &operatorsv1alpha1.CatalogSource{Spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Image: image}}
	source.Name = named
	for _, c := range change {
		c(source)
	}
	return source
}

// get reads an object in the test's namespace.
func (w *world) get(g gomega.Gomega, named string, o client.Object) {
	g.Expect(w.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: named}, o)).To(gomega.Succeed())
}

// source reads a CatalogSource with a decoder that accepts every valid object.
func (w *world) source(g gomega.Gomega, named string) *operatorsv1alpha1.CatalogSource {
	u := catalogs.NewObject()
	w.get(g, named, u)
	source, err := catalogs.Decode(u)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	return source
}

// becomes waits until a CatalogSource meets the expectations of a test.
func (w *world) becomes(named string, want func(gomega.Gomega, *operatorsv1alpha1.CatalogSource)) {
	w.t.Helper()
	w.Eventually(func(g gomega.Gomega) { want(g, w.source(g, named)) }).Should(gomega.Succeed())
}

// condition returns status, reason and message of a condition as one text.
func condition(source *operatorsv1alpha1.CatalogSource, kind string) string {
	for _, c := range source.Status.Conditions {
		if c.Type == kind {
			return string(c.Status) + " " + c.Reason + " " + c.Message
		}
	}
	return ""
}

// rolledOut waits until all replicas of a catalog run and the Deployment meets the expectations.
func (w *world) rolledOut(named string, replicas int32, want ...func(gomega.Gomega, *appsv1.Deployment)) *appsv1.Deployment {
	w.t.Helper()
	d := &appsv1.Deployment{}
	w.Eventually(func(g gomega.Gomega) {
		w.get(g, named, d)
		for _, one := range want {
			one(g, d)
		}
		g.Expect(d.Status.ObservedGeneration).To(gomega.Equal(d.Generation))
		g.Expect(*d.Spec.Replicas).To(gomega.Equal(replicas))
		g.Expect(d.Status.AvailableReplicas).To(gomega.Equal(replicas))
		g.Expect(d.Status.UpdatedReplicas).To(gomega.Equal(replicas))
		source := w.source(g, named)
		g.Expect(condition(source, "Progressing")).To(gomega.HavePrefix("False RolledOut"))
		g.Expect(condition(source, "Available")).To(gomega.HavePrefix(fmt.Sprintf("True ReplicasServe %d of %d replicas are ready", replicas, replicas)))
	}).Should(gomega.Succeed())
	return d
}

// runs expects a Deployment to run an image.
func runs(image string) func(gomega.Gomega, *appsv1.Deployment) {
	return func(g gomega.Gomega, d *appsv1.Deployment) {
		g.Expect(d.Spec.Template.Spec.Containers[0].Image).To(gomega.Equal(image))
	}
}

// images is an in-process registry.
type images struct {
	t    *testing.T
	host string

	mu             sync.Mutex
	user, password string
	down           bool
	requests       int
}

// newImages starts a registry. If user is not empty, it requires authentication.
func newImages(t *testing.T, user, password string) *images {
	t.Helper()
	i := &images{t: t, user: user, password: password}
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, req *http.Request) {
		i.mu.Lock()
		i.requests++
		down := i.down
		i.mu.Unlock()
		given, secret, _ := req.BasicAuth()
		switch {
		case down:
			out.WriteHeader(http.StatusServiceUnavailable)
		case user != "" && (given != user || secret != password):
			out.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			out.WriteHeader(http.StatusUnauthorized)
		default:
			handler.ServeHTTP(out, req)
		}
	}))
	t.Cleanup(server.Close)
	i.host = strings.TrimPrefix(server.URL, "http://")
	return i
}

func (i *images) stop(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = down
}

// push writes a new image, or an earlier one, to a tag and returns the image and its digest.
func (i *images) push(reference string, labels map[string]string, again ...v1.Image) (v1.Image, string) {
	i.t.Helper()
	var img v1.Image
	if len(again) > 0 {
		img = again[0]
	} else {
		var err error
		if img, err = random.Image(64, 1); err != nil {
			i.t.Fatal(err)
		}
		if img, err = mutate.Config(img, v1.Config{Labels: labels}); err != nil {
			i.t.Fatal(err)
		}
	}
	ref, err := name.ParseReference(i.host+"/"+reference, name.Insecure)
	if err != nil {
		i.t.Fatal(err)
	}
	auth := remote.WithAuth(authn.Anonymous)
	if i.user != "" {
		auth = remote.WithAuth(&authn.Basic{Username: i.user, Password: i.password})
	}
	if err := remote.Write(ref, img, auth); err != nil {
		i.t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		i.t.Fatal(err)
	}
	return img, digest.String()
}

// pullSecret returns a Secret with credentials for a host.
func pullSecret(named, host, user, password string) *corev1.Secret {
	text, err := json.Marshal(map[string]any{"auths": map[string]any{host: map[string]string{
		"auth": base64.StdEncoding.EncodeToString([]byte(user + ":" + password)),
	}}})
	if err != nil {
		panic(err)
	}
	secret := &corev1.Secret{Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: bytes.TrimSpace(text)}}
	secret.Name = named
	return secret
}
