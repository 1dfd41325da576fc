package suite_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

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
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
	"github.com/chandlery/chandlery/supervisor/imagepolicy"
	"github.com/chandlery/chandlery/supervisor/imagesources"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, controlplane.Options{}, testenv.InstallCRDs))
}

// world gives a test access to the cluster.
type world struct{ *testenv.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{testenv.New(t)}
	w.Config.QPS, w.Config.Burst = 1000, 1000
	return w
}

// in returns the world for a subtest.
func (w *world) in(t *testing.T) *world {
	t.Helper()
	return &world{w.In(t)}
}

// written returns the write requests of the supervisors in the namespace of the test. Objects of other tests remain for
// the cleanup.
func (w *world) written() []string {
	return w.Requests.Writes(testenv.Containing("/" + w.Namespace + "/"))
}

// supervise runs the controller until the end of the test.
func (w *world) supervise(change ...func(*catalogsource.Config)) {
	w.T.Helper()
	settings := catalogsource.Config{Settings: deployment.Settings{SetWorkloadUserID: true}, PlainHTTP: true}
	for _, c := range change {
		c(&settings)
	}
	w.StartManager(ctrl.Options{}, func(mgr testenv.Manager) error {
		// The store follows nothing, because kwok's replicas do not answer.
		store := catalogs.NewStore(mgr.Context, time.Second, clock.RealClock{})
		registries := imagesources.New(settings.Registries, nil)
		return errors.Join(mgr.Add(registries), catalogsource.Setup(mgr, catalogsource.Options{
			Store: store, Config: settings, Sources: registries, Policies: imagepolicy.New(settings.Registries.Config),
		}))
	})
}

// catalog returns a CatalogSource with an image.
func catalog(named, image string, change ...func(*operatorsv1alpha1.CatalogSource)) *operatorsv1alpha1.CatalogSource {
	source := fixtures.ImageCatalog("", named, image)
	for _, c := range change {
		c(source)
	}
	return source
}

// get reads an object in the test's namespace.
func (w *world) get(g gomega.Gomega, named string, o client.Object) {
	g.Expect(w.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: named}, o)).To(gomega.Succeed())
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
	w.T.Helper()
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
	w.T.Helper()
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
