package bundleimage

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bed is a registry with a Cache that pulls from it.
type bed struct {
	*testing.T

	server *httptest.Server
	// inner is the registry itself.
	inner  http.Handler
	reader *objects
	dir    string

	mu sync.Mutex
	// before may answer a request instead of the registry.
	before func(http.ResponseWriter, *http.Request) bool
	// requests are the requests that the registry received, as method and path.
	requests []string
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{T: t, reader: &objects{found: map[string]client.Object{}}, dir: t.TempDir() + "/bundles"}
	b.inner = registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		before := b.before
		b.requests = append(b.requests, r.Method+" "+r.URL.Path)
		b.mu.Unlock()
		if before == nil || !before(w, r) {
			b.inner.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(b.server.Close)
	return b
}

func (b *bed) host() string { return strings.TrimPrefix(b.server.URL, "http://") }

// answer sets a function that answers instead of the registry.
func (b *bed) answer(before func(http.ResponseWriter, *http.Request) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.before = before
}

// sent returns the number of requests whose method and path contain a text, since the last call of forget.
func (b *bed) sent(part string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, one := range b.requests {
		if strings.Contains(one, part) {
			n++
		}
	}
	return n
}

func (b *bed) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests = nil
}

// cache returns a Cache that is not started yet.
func (b *bed) cache(change func(*Options)) *Cache {
	b.Helper()
	o := Options{Reader: b.reader, Dir: b.dir, PlainHTTP: true}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// run runs a Cache until the test ends or the returned function is called.
func (b *bed) run(c *Cache) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := c.Start(ctx); err != nil {
			b.Error(err)
		}
	}()
	stop = func() {
		cancel()
		<-ended
	}
	b.Cleanup(stop)
	return stop
}

// started creates a Cache and runs it until the test ends.
func (b *bed) started(change func(*Options)) *Cache {
	b.Helper()
	c := b.cache(change)
	b.run(c)
	return c
}

// private returns a handler that refuses requests without the user's password.
func private(word string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if gotUser, got, ok := r.BasicAuth(); ok && gotUser == "user" && got == word {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
}

// unavailable answers as a registry that is not available.
func unavailable(w http.ResponseWriter, _ *http.Request) bool {
	w.WriteHeader(http.StatusServiceUnavailable)
	return true
}

// secret creates a pull secret for the registry.
func (b *bed) secret(namespace, called, word string) {
	auth := base64.StdEncoding.EncodeToString([]byte("user:" + word))
	b.reader.put(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: called, UID: types.UID(namespace + called), ResourceVersion: "1"},
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"` + b.host() + `":{"auth":"` + auth + `"}}}`)},
	})
}

// account creates a ServiceAccount with pull secrets.
func (b *bed) account(namespace, called string, secrets ...string) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: called}}
	for _, one := range secrets {
		account.ImagePullSecrets = append(account.ImagePullSecrets, corev1.LocalObjectReference{Name: one})
	}
	b.reader.put(account)
}

// slow is a response writer that stops after some bytes until it is released.
type slow struct {
	http.ResponseWriter

	left    int
	release <-chan struct{}
}

func (s *slow) Write(p []byte) (int, error) {
	if len(p) <= s.left {
		s.left -= len(p)
		return s.ResponseWriter.Write(p)
	}
	n, err := s.ResponseWriter.Write(p[:s.left])
	if err != nil {
		return n, err
	}
	if flusher, ok := s.ResponseWriter.(http.Flusher); ok {
		flusher.Flush()
	}
	<-s.release
	more, err := s.ResponseWriter.Write(p[n:])
	s.left = 1 << 30
	return n + more, err
}

// noise returns a text that compression does not shorten.
func noise(size int) string {
	source := rand.New(rand.NewPCG(1, 2))
	var out strings.Builder
	for out.Len() < size {
		fmt.Fprintf(&out, "%016x", source.Uint64())
	}
	return out.String()
}

// files are the files of an image, by path.
type files map[string]string

// image returns an image with labels.
func (b *bed) image(labels map[string]string, content files) v1.Image {
	b.Helper()
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	names := make([]string, 0, len(content))
	for one := range content {
		names = append(names, one)
	}
	slices.Sort(names)
	for _, one := range names {
		if err := w.WriteHeader(&tar.Header{Name: one, Typeflag: tar.TypeReg, Size: int64(len(content[one])), Mode: 0o644}); err != nil {
			b.Fatal(err)
		}
		if _, err := w.Write([]byte(content[one])); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil })
	if err != nil {
		b.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		b.Fatal(err)
	}
	img, err = mutate.Config(img, v1.Config{Labels: labels})
	if err != nil {
		b.Fatal(err)
	}
	return img
}

// bundle returns a bundle image.
func (b *bed) bundle() v1.Image {
	b.Helper()
	return b.image(labelled(), files{
		"manifests/a.configmap.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n",
		"manifests/csv.yaml":         csvText("lamp.v1"),
		"metadata/annotations.yaml":  "annotations: {}\n",
	})
}

func csvText(csv string) string {
	return "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata:\n  name: " + csv + "\n"
}

func labelled() map[string]string {
	return map[string]string{
		"operators.operatorframework.io.bundle.manifests.v1": "manifests/",
		"operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
	}
}

// push pushes an image to the registry and returns its reference and digest.
func (b *bed) push(repository string, img v1.Image) (reference, digest string) {
	b.Helper()
	reference = b.host() + "/" + repository
	ref, err := name.ParseReference(reference, name.Insecure)
	if err != nil {
		b.Fatal(err)
	}
	b.mu.Lock()
	before := b.before
	b.before = nil
	b.mu.Unlock()
	if err := remote.Write(ref, img); err != nil {
		b.Fatal(err)
	}
	b.answer(before)
	hash, err := img.Digest()
	if err != nil {
		b.Fatal(err)
	}
	return reference, hash.String()
}

// request returns a request for an image on behalf of a namespace, with the credentials of its catalog.
func request(reference, namespace string, secrets ...string) Request {
	return Request{
		Image: reference, Catalog: types.NamespacedName{Namespace: namespace, Name: "wares"},
		Secrets: secrets, Namespace: namespace, Timeout: -1,
	}
}

// await polls the state of a request until it is as wanted.
func (b *bed) await(c *Cache, r Request, what string, wanted func(State) bool) State {
	b.Helper()
	deadline := time.After(30 * time.Second)
	for {
		s := c.State(b.Context(), r)
		if wanted(s) {
			return s
		}
		select {
		case <-deadline:
			b.Fatalf("%s: the state stayed %+v", what, s)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func ready(s State) bool { return s.Ready }

func failed(s State) bool { return s.Err != nil }

// objects are the objects of a cluster, by kind, namespace and name.
type objects struct {
	mu    sync.Mutex
	found map[string]client.Object
	err   error
}

func (o *objects) put(object client.Object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.found[fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))] = object
}

// remove deletes an object.
func (o *objects) remove(object client.Object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.found, fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object)))
}

// fail makes all reads fail.
func (o *objects) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
}

func (o *objects) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return o.err
	}
	switch found := o.found[fmt.Sprintf("%T %s", into, key)].(type) {
	case *corev1.Secret:
		found.DeepCopyInto(into.(*corev1.Secret)) //nolint:forcetypeassert // it is of the type that was asked for
	case *corev1.ServiceAccount:
		found.DeepCopyInto(into.(*corev1.ServiceAccount)) //nolint:forcetypeassert // it is of the type that was asked for
	case *corev1.ConfigMap:
		found.DeepCopyInto(into.(*corev1.ConfigMap)) //nolint:forcetypeassert // it is of the type that was asked for
	default:
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return nil
}

func (o *objects) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return apierrors.NewMethodNotSupported(schema.GroupResource{}, "list")
}
