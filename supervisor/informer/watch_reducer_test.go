package informer_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/chandlery/chandlery/supervisor/api/scheme"
	"github.com/chandlery/chandlery/supervisor/informer"
)

// known returns a scheme with all watched kinds, whole and as metadata.
func known(t *testing.T) *kruntime.Scheme {
	t.Helper()
	known, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := metav1.AddMetaToScheme(known); err != nil {
		t.Fatal(err)
	}
	return known
}

// inProtobuf returns an event as API servers send it.
func inProtobuf(t *testing.T, event watch.EventType, o kruntime.Object) []byte {
	t.Helper()
	var encoded bytes.Buffer
	if err := protobuf.NewSerializer(known(t), known(t)).Encode(o, &encoded); err != nil {
		t.Fatal(err)
	}
	frame, err := (&metav1.WatchEvent{Type: string(event), Object: kruntime.RawExtension{Raw: encoded.Bytes()}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
}

// inJSON returns an event as API servers send it.
func inJSON(t *testing.T, event watch.EventType, o kruntime.Object) []byte {
	t.Helper()
	frame, err := json.Marshal(map[string]any{"type": event, "object": o})
	if err != nil {
		t.Fatal(err)
	}
	return append(frame, '\n')
}

// stream starts an API server that sends the same events to every watch, and then nothing until the watch ends.
func stream(t *testing.T, media string, events ...[]byte) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", media)
		for _, event := range events {
			if _, err := w.Write(event); err != nil {
				return
			}
		}
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL + "/behind/a/proxy"}
}

// watchWhole starts a watch of a kind.
func watchWhole(ctx context.Context, t *testing.T, cfg *rest.Config, gvk schema.GroupVersionKind, resource string) watch.Interface {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c, err := apiutil.RESTClientForGVK(gvk, false, false, cfg, serializer.NewCodecFactory(known(t)), httpClient)
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.Get().Namespace("tenant").Resource(resource).VersionedParams(&metav1.ListOptions{Watch: true}, metav1.ParameterCodec).Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// next returns the next event of a watch.
func next(ctx context.Context, t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case event, open := <-w.ResultChan():
		if !open {
			t.Fatal("the watch has ended")
		}
		return event
	case <-ctx.Done():
		t.Fatal("there is no further event")
	}
	return watch.Event{}
}

func typed(o client.Object, gvk schema.GroupVersionKind, name string) client.Object {
	o.GetObjectKind().SetGroupVersionKind(gvk)
	o.SetName(name)
	return o
}

var (
	deployments   = appsv1.SchemeGroupVersion.WithKind("Deployment")
	services      = corev1.SchemeGroupVersion.WithKind("Service")
	pods          = corev1.SchemeGroupVersion.WithKind("Pod")
	crds          = schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "ClusterServiceVersion"}
	subscriptions = operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.SubscriptionKind)
)

// TestReducedWatches uses API servers that send large and small objects. Large objects of kinds that tenants
// create arrive reduced, and others unchanged.
func TestReducedWatches(t *testing.T) {
	small := corev1.PodSpec{Containers: []corev1.Container{{Name: "kettle", Image: "kettle:v1"}}}
	huge := corev1.PodSpec{NodeName: "one", Containers: []corev1.Container{{Name: "kettle", Env: []corev1.EnvVar{{Value: text(large)}}}}}
	version := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"note": text(large)}}}
	for _, tt := range []struct {
		reason   string
		media    string
		encode   func(*testing.T, watch.EventType, kruntime.Object) []byte
		resource string
		o        client.Object
		gvk      schema.GroupVersionKind
		want     func(client.Object) bool
	}{
		{"a large Deployment", "application/vnd.kubernetes.protobuf;stream=watch", inProtobuf, "deployments", &appsv1.Deployment{
			Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: huge}},
		}, deployments, func(o client.Object) bool {
			return informer.Trimmed(o) && len(o.(*appsv1.Deployment).Spec.Template.Spec.Containers) == 0
		}},
		{"a small Deployment", "application/vnd.kubernetes.protobuf;stream=watch", inProtobuf, "deployments", &appsv1.Deployment{
			Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: small}},
		}, deployments, func(o client.Object) bool {
			return !informer.Trimmed(o) && len(o.(*appsv1.Deployment).Spec.Template.Spec.Containers) == 1
		}},
		{"a large pod, of which no spec is read", "application/vnd.kubernetes.protobuf;stream=watch", inProtobuf, "pods", &corev1.Pod{
			Spec: huge, Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "192.0.2.1"},
		}, pods, func(o client.Object) bool {
			want := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "one"}, Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "192.0.2.1"}}
			return cmp.Equal(want.Spec, o.(*corev1.Pod).Spec) && cmp.Equal(want.Status, o.(*corev1.Pod).Status)
		}},
		{"a Service with large labels, in JSON", "application/json", inJSON, "services", &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Labels: many("a", large)}, Spec: corev1.ServiceSpec{ClusterIP: "None"},
		}, services, func(o client.Object) bool { return informer.Trimmed(o) && o.(*corev1.Service).Spec.ClusterIP == "None" }},
		{"a Subscription with a large configuration", "application/json;stream=watch", inJSON, "subscriptions", &operatorsv1alpha1.Subscription{
			Spec: &operatorsv1alpha1.SubscriptionSpec{Package: "kettle", Config: &operatorsv1alpha1.SubscriptionConfig{Env: []corev1.EnvVar{{Value: text(large)}}}},
		}, subscriptions, func(o client.Object) bool {
			spec := o.(*operatorsv1alpha1.Subscription).Spec
			return informer.Trimmed(o) && spec.Package == "kettle" && spec.Config == nil
		}},
		{"a large ClusterServiceVersion", "application/json", inJSON, "clusterserviceversions", version, crds, func(o client.Object) bool {
			return !informer.Trimmed(o) && len(o.GetAnnotations()["note"]) == large
		}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ended := &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Reason: metav1.StatusReasonExpired}
			var events [][]byte
			for _, event := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
				events = append(events, tt.encode(t, event, typed(tt.o, tt.gvk, strings.ToLower(string(event)))))
			}
			cfg := stream(t, tt.media, append(events, tt.encode(t, watch.Error, ended))...)
			if err := informer.ReduceReplies(cfg); err != nil {
				t.Fatal(err)
			}
			w := watchWhole(ctx, t, cfg, tt.gvk, tt.resource)
			for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
				got := next(ctx, t, w)
				o, is := got.Object.(client.Object)
				if !is || got.Type != want || o.GetName() != strings.ToLower(string(want)) || !tt.want(o) {
					t.Errorf("event %s with %T %.200v, want %s", got.Type, got.Object, got.Object, want)
				}
			}
			if got := next(ctx, t, w); got.Type != watch.Error {
				t.Errorf("event %s, want the error", got.Type)
			}
		})
	}
}

// TestReducedWatchesOfMetadata uses a Service with large labels, of which the metadata is watched.
func TestReducedWatchesOfMetadata(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	o := typed(&metav1.PartialObjectMetadata{}, metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"), "o")
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Group: "meta.k8s.io", Version: "v1", Kind: "PartialObjectMetadata"})
	o.SetLabels(many("a", large))
	cfg := stream(t, "application/vnd.kubernetes.protobuf;stream=watch", inProtobuf(t, watch.Added, o))
	if err := informer.ReduceReplies(cfg); err != nil {
		t.Fatal(err)
	}
	c, err := metadata.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.Resource(corev1.SchemeGroupVersion.WithResource("services")).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	got, is := next(ctx, t, w).Object.(*metav1.PartialObjectMetadata)
	if !is || got.Name != "o" || !informer.Trimmed(got) {
		t.Errorf("got %q %s, trimmed %t", got.Name, got.GroupVersionKind(), informer.Trimmed(got))
	}
}

// TestReducedWatchesKeepNoBuffers starts many watches that read a large object and then wait, as watches
// usually do. The remaining memory does not grow with the size of the object.
func TestReducedWatchesKeepNoBuffers(t *testing.T) {
	const (
		watches = 16
		most    = 8 << 20
	)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	large, enormous := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Labels: many("a", large)}}, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Labels: many("a", 12<<20)}}
	for _, tt := range []struct {
		media string
		event []byte
	}{
		{"application/vnd.kubernetes.protobuf;stream=watch", inProtobuf(t, watch.Added, typed(large, services, "o"))},
		{"application/json;stream=watch", inJSON(t, watch.Added, typed(large, services, "o"))},
		// API servers store no object of this size. A proxy may send one.
		{"application/vnd.kubernetes.protobuf;stream=watch", inProtobuf(t, watch.Added, typed(enormous, services, "o"))},
	} {
		t.Run(fmt.Sprintf("%s of %d MiB", tt.media, len(tt.event)>>20), func(t *testing.T) {
			cfg := stream(t, tt.media, tt.event)
			if err := informer.ReduceReplies(cfg); err != nil {
				t.Fatal(err)
			}
			before := live()
			var all []watch.Interface
			for range watches {
				w := watchWhole(ctx, t, cfg, services, "services")
				if got := next(ctx, t, w); got.Type != watch.Added {
					t.Fatalf("event %s", got.Type)
				}
				all = append(all, w)
			}
			if after := live(); after > before+most {
				t.Errorf("%d watches keep %d KiB", watches, (after-before)>>10)
			}
			runtime.KeepAlive(all)
		})
	}
}

// live returns the number of bytes of the heap that are in use.
func live() uint64 {
	var stats runtime.MemStats
	// The content of pools survives one collection.
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestReducedWatchesByPieces reads events in pieces of every size.
func TestReducedWatchesByPieces(t *testing.T) {
	bookmark := typed(&corev1.Service{}, services, "")
	event := typed(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Labels: many("a", 100<<10)}}, services, "o")
	for media, encode := range map[string]func(*testing.T, watch.EventType, kruntime.Object) []byte{
		"application/vnd.kubernetes.protobuf;stream=watch": inProtobuf, "application/json;stream=watch": inJSON,
	} {
		sent := bytes.Join([][]byte{encode(t, watch.Added, event), encode(t, watch.Bookmark, bookmark), encode(t, watch.Modified, event), encode(t, watch.Bookmark, bookmark)}, nil)
		read := func(in, out func(io.Reader) io.Reader) ([]byte, error) {
			cfg := &rest.Config{Host: "https://cluster.example"}
			cfg.Wrap(func(http.RoundTripper) http.RoundTripper {
				return reply{media: media, body: func() io.Reader { return in(bytes.NewReader(sent)) }}
			})
			if err := informer.ReduceReplies(cfg); err != nil {
				t.Fatal(err)
			}
			c, err := rest.HTTPClientFor(cfg)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := c.Get("https://cluster.example/api/v1/services?watch=true")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			return io.ReadAll(out(resp.Body))
		}
		plain := func(r io.Reader) io.Reader { return r }
		whole, err := read(plain, plain)
		if err != nil || len(whole) > 16<<10 {
			t.Fatalf("%s: %d bytes: %v", media, len(whole), err)
		}
		for name, reader := range map[string]func(io.Reader) io.Reader{
			"one byte": iotest.OneByteReader, "half": iotest.HalfReader, "data and error": iotest.DataErrReader,
		} {
			for where, got := range map[string]func() ([]byte, error){
				"received": func() ([]byte, error) { return read(reader, plain) }, "passed on": func() ([]byte, error) { return read(plain, reader) },
			} {
				if got, err := got(); err != nil || !bytes.Equal(got, whole) {
					t.Errorf("%s, %s %s: %d bytes, want %d: %v", media, name, where, len(got), len(whole), err)
				}
			}
		}
		cut, err := read(func(r io.Reader) io.Reader { return io.LimitReader(r, 50<<10) }, plain)
		if len(cut) > 0 || err == nil {
			t.Errorf("%s: %d bytes of a watch that was cut off, and %v", media, len(cut), err)
		}
	}
}

// reply is a transport that returns the same reply to all requests.
type reply struct {
	media string
	body  func() io.Reader
}

// RoundTrip replies.
func (r reply) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {r.media}}, Body: io.NopCloser(r.body())}, nil
}
