package informer

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializerjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/rest"

	"github.com/chandlery/chandlery/supervisor/api/scheme"
)

const (
	// maxFrame is the maximum size of a watch event that is not reduced, in bytes.
	maxFrame = 64 << 10
	// maxReduced is the maximum size of an event that is reduced, in bytes. client-go refuses larger ones.
	maxReduced = 16 << 20
	// maxKept is the maximum size of a buffer that is kept for the next event, in bytes. API servers store no larger
	// object.
	maxKept = 2 << 20
	// headSize is the length of the prefix of an event in protobuf, which holds its size.
	headSize = 4
)

// ReduceReplies makes the clients of a configuration reduce large objects before they are decoded. It covers the
// kinds that tenants create, in events of watches and in the lists of informers and of [ReducedLists]. The result
// has the fields that Transform keeps.
//
// The decoder of each watch keeps a buffer as large as its largest event, until the watch ends. Here one buffer
// serves all watches in protobuf, and watches in JSON keep none. One large event at a time is decoded whole.
func ReduceReplies(cfg *rest.Config) error {
	r, err := newReplyReducer()
	if err != nil {
		return err
	}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &reducingTransport{next: next, reducer: r} })
	return nil
}

func newReplyReducer() (*replyReducer, error) {
	known, err := scheme.New()
	if err != nil {
		return nil, err //nolint:wrapcheck // says what it builds
	}
	if err := metav1.AddMetaToScheme(known); err != nil {
		return nil, fmt.Errorf("building the scheme of watched objects: %w", err)
	}
	return &replyReducer{
		protobuf: protobuf.NewSerializer(known, known),
		json:     serializerjson.NewSerializerWithOptions(serializerjson.DefaultMetaFactory, known, known, serializerjson.SerializerOptions{}),
	}, nil
}

// reducingTransport reduces the replies to watches and lists.
type reducingTransport struct {
	next    http.RoundTripper
	reducer *replyReducer
}

// WrappedRoundTripper returns the transport that sends requests.
func (t *reducingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip sends a request.
func (t *reducingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	watches, lists := req.URL.Query().Get("watch") == "true", req.Method == http.MethodGet && req.Context().Value(reduced{}) != nil
	if err != nil || resp.StatusCode != http.StatusOK || !watches && !lists {
		return resp, err //nolint:wrapcheck // the transport's own
	}
	kind, created := kindAt(req.URL.Path)
	if !created {
		return resp, nil
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if watches {
		t.reducer.reduceWatch(resp, media, kind)
	} else {
		t.reducer.reduceList(resp, media, kind)
	}
	return resp, nil
}

// kindAt returns the kind of the resource at a path of the API, and whether tenants create objects of it.
func kindAt(path string) (kind schema.GroupKind, created bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	resource := parts[len(parts)-1]
	var group string
	if at := slices.Index(parts, "apis"); at >= 0 && at+1 < len(parts) {
		group = parts[at+1]
	}
	for _, w := range ofTenants() {
		if w.Group == group && w.Resource == resource {
			return schema.GroupKind{Group: w.Group, Kind: w.Kind}, true
		}
	}
	return schema.GroupKind{}, false
}

// replyReducer reduces events of watches.
type replyReducer struct {
	protobuf, json runtime.Serializer

	// mu is held while an event is read and reduced.
	mu     sync.Mutex
	buffer []byte
}

// reduceWatch reduces the events in the body of a reply.
func (r *replyReducer) reduceWatch(resp *http.Response, media string, kind schema.GroupKind) {
	switch media {
	case runtime.ContentTypeProtobuf:
		resp.Body = &protobufEvents{ReadCloser: resp.Body, kind: kind, reducer: r}
	case runtime.ContentTypeJSON:
		resp.Body = &jsonEvents{ReadCloser: resp.Body, kind: kind, reducer: r, reader: bufio.NewReaderSize(resp.Body, maxFrame)}
	}
}

// readProtobuf reads an event of a size and returns it reduced, with its size as prefix.
func (r *replyReducer) readProtobuf(from io.Reader, size int, kind schema.GroupKind) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cap(r.buffer) < size {
		r.buffer = make([]byte, size)
	}
	frame := r.buffer[:size]
	if cap(r.buffer) > maxKept {
		r.buffer = nil
	}
	if _, err := io.ReadFull(from, frame); err != nil {
		return nil, err //nolint:wrapcheck // client-go looks at it
	}
	var event metav1.WatchEvent
	if event.Unmarshal(frame) == nil && r.reduce(&event, r.protobuf, kind, false) {
		if reduced, err := event.Marshal(); err == nil {
			frame = reduced
		}
	}
	head := make([]byte, 0, headSize+len(frame))
	head = binary.BigEndian.AppendUint32(head, uint32(len(frame))) //nolint:gosec // it is at most maxReduced
	return append(head, frame...), nil
}

// reduceJSON returns an event reduced, or unchanged if it cannot be reduced.
func (r *replyReducer) reduceJSON(frame []byte, kind schema.GroupKind) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	short, cut := cutConfig(frame, "object", "spec", "config")
	var event metav1.WatchEvent
	if json.Unmarshal(short, &event) != nil || !r.reduce(&event, r.json, kind, cut) {
		return frame
	}
	reduced, err := json.Marshal(event)
	if err != nil {
		return frame
	}
	return reduced
}

// reduce reduces the object of an event, and reports whether that was possible. It does not reduce objects of
// unknown kinds, nor messages of the API server about the watch. An object from which a part was cut before
// bears AnnotationTrimmed.
func (r *replyReducer) reduce(event *metav1.WatchEvent, serializer runtime.Serializer, kind schema.GroupKind, cut bool) bool {
	object, gvk, err := serializer.Decode(event.Object.Raw, nil, nil)
	if err != nil {
		return false
	}
	if meta, is := object.(metav1.Object); is && cut {
		mark(meta)
	}
	if pod, is := object.(*corev1.Pod); is {
		pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName}
	}
	if meta, is := object.(*metav1.PartialObjectMetadata); is {
		meta.SetGroupVersionKind(kind.WithVersion(gvk.Version))
	}
	if _, err := Transform(object); err != nil {
		return false
	}
	object.GetObjectKind().SetGroupVersionKind(*gvk)
	var encoded bytes.Buffer
	if err := serializer.Encode(object, &encoded); err != nil {
		return false
	}
	event.Object.Raw = encoded.Bytes()
	return true
}

// protobufEvents are the events of a watch in protobuf, each prefixed with its size.
type protobufEvents struct {
	io.ReadCloser

	kind    schema.GroupKind
	reducer *replyReducer
	// ready is read next, and then the remaining bytes of an event that is not reduced.
	ready   []byte
	passing int
}

// Read reads events.
func (f *protobufEvents) Read(p []byte) (int, error) {
	if len(f.ready) == 0 && f.passing == 0 {
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	if len(f.ready) > 0 {
		return take(p, &f.ready), nil
	}
	n, err := f.ReadCloser.Read(p[:min(len(p), f.passing)])
	f.passing -= n
	return n, err //nolint:wrapcheck // client-go looks at it
}

// next starts with the next event.
func (f *protobufEvents) next() error {
	head := make([]byte, headSize)
	if _, err := io.ReadFull(f.ReadCloser, head); err != nil {
		return err //nolint:wrapcheck // client-go looks at it
	}
	size := int(binary.BigEndian.Uint32(head))
	if size <= maxFrame || size > maxReduced {
		f.ready, f.passing = head, size
		return nil
	}
	frame, err := f.reducer.readProtobuf(f.ReadCloser, size, f.kind)
	f.ready = frame
	return err
}

// jsonEvents are the events of a watch in JSON.
type jsonEvents struct {
	io.ReadCloser

	kind    schema.GroupKind
	reducer *replyReducer
	reader  *bufio.Reader // of the watch
	ready   []byte
}

// Read reads events.
func (f *jsonEvents) Read(p []byte) (int, error) {
	if len(f.ready) == 0 {
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	return take(p, &f.ready), nil
}

// next reads the next event.
func (f *jsonEvents) next() error {
	frame, err := readValue(f.reader)
	if err != nil {
		return err
	}
	if len(frame) > maxFrame {
		frame = f.reducer.reduceJSON(frame, f.kind)
	}
	frame = append(frame, '\n')
	f.ready = frame
	return nil
}

// take moves the beginning of ready to p. It releases a buffer that was read to its end.
func take(p []byte, ready *[]byte) int {
	n := copy(p, *ready)
	if *ready = (*ready)[n:]; len(*ready) == 0 {
		*ready = nil
	}
	return n
}
