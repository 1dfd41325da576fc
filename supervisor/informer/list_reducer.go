package informer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxItem is the maximum size of an object of a list that is not reduced, in bytes. Decoded, an object takes up
	// to 50 times as much.
	maxItem = 16 << 10
	// maxList is the maximum size of a list in protobuf, in bytes.
	maxList = math.MaxInt32
	// maxListHead is the maximum size of the type and of the metadata of a list, in bytes.
	maxListHead = 64 << 10
)

// magic begins each object in protobuf. See k8s.io/apimachinery/pkg/runtime/serializer/protobuf.
var magic = []byte("k8s\x00")

// reduced is the key of contexts whose lists are reduced.
type reduced struct{}

// reduceLists returns a context whose lists are reduced by the transport of [ReduceReplies].
func reduceLists(ctx context.Context) context.Context {
	return context.WithValue(ctx, reduced{}, true)
}

// ReducedLists returns a client whose lists have only the fields that [Transform] keeps. It needs a configuration
// that [ReduceReplies] changed.
func ReducedLists(c client.Client) client.Client { return &reducedLists{c} }

type reducedLists struct{ client.Client }

// List lists objects.
func (r *reducedLists) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.Client.List(reduceLists(ctx), list, opts...) //nolint:wrapcheck // callers check the API error
}

// reducedList is the reply to a list request. The first Read reads the whole reply, one object at a time, and
// reduces its objects.
type reducedList struct {
	io.ReadCloser

	kind   schema.GroupKind
	reduce func(from *bufio.Reader, kind schema.GroupKind) ([]byte, error)
	ready  *bytes.Reader
}

// Read reads the reduced list.
func (l *reducedList) Read(p []byte) (int, error) {
	if l.ready == nil {
		list, err := l.reduce(bufio.NewReader(l.ReadCloser), l.kind)
		if err != nil {
			return 0, fmt.Errorf("reading a list: %w", err)
		}
		l.ready = bytes.NewReader(list)
	}
	return l.ready.Read(p) //nolint:wrapcheck // it is io.EOF
}

// reduceList reduces the list in the body of a reply.
func (r *replyReducer) reduceList(resp *http.Response, media string, kind schema.GroupKind) {
	switch media {
	case runtime.ContentTypeProtobuf:
		resp.Body = &reducedList{ReadCloser: resp.Body, kind: kind, reduce: r.listProtobuf}
	case runtime.ContentTypeJSON:
		resp.Body = &reducedList{ReadCloser: resp.Body, kind: kind, reduce: r.listJSON}
	default:
		return
	}
	resp.ContentLength = -1
	resp.Header.Del("Content-Length")
}

// reduceItem reduces an object of a list if it is large.
func (r *replyReducer) reduceItem(item []byte, serializer runtime.Serializer, kind schema.GroupKind, cut bool) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	event := metav1.WatchEvent{Object: runtime.RawExtension{Raw: item}}
	if !r.reduce(&event, serializer, kind, cut) {
		return item
	}
	return event.Object.Raw
}

// listJSON reads a list in JSON and returns it reduced. The items of a list of custom resources state their kind;
// others are not reduced.
func (r *replyReducer) listJSON(from *bufio.Reader, kind schema.GroupKind) ([]byte, error) {
	decoder := json.NewDecoder(from)
	if err := expect(decoder, json.Delim('{')); err != nil {
		return nil, err
	}
	list := []byte{'{'}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err //nolint:wrapcheck // Read wraps it
		}
		key, _ := token.(string)
		if len(list) > 1 {
			list = append(list, ',')
		}
		name, err := json.Marshal(key)
		if err != nil {
			return nil, err //nolint:wrapcheck // cannot fail for a string
		}
		list = append(append(list, name...), ':')
		if list, err = r.memberJSON(decoder, key, list, kind); err != nil {
			return nil, err
		}
	}
	return append(list, '}'), expect(decoder, json.Delim('}'))
}

// memberJSON appends the value of a key of a list.
func (r *replyReducer) memberJSON(decoder *json.Decoder, key string, list []byte, kind schema.GroupKind) ([]byte, error) {
	var value json.RawMessage
	if key != "items" {
		err := decoder.Decode(&value)
		return append(list, value...), err //nolint:wrapcheck // Read wraps it
	}
	token, err := decoder.Token()
	if err != nil || token == nil {
		return append(list, "null"...), err //nolint:wrapcheck // Read wraps it
	}
	if token != json.Delim('[') {
		return nil, fmt.Errorf("items is %v, not an array", token)
	}
	list = append(list, '[')
	for first := true; decoder.More(); first = false {
		if err := decoder.Decode(&value); err != nil {
			return nil, err //nolint:wrapcheck // Read wraps it
		}
		if !first {
			list = append(list, ',')
		}
		item := []byte(value)
		if len(item) > maxItem {
			short, cut := cutConfig(item, "spec", "config")
			item = bytes.TrimSpace(r.reduceItem(short, r.json, kind, cut))
		}
		list = append(list, item...)
	}
	return append(list, ']'), expect(decoder, json.Delim(']'))
}

func expect(decoder *json.Decoder, want json.Delim) error {
	token, err := decoder.Token()
	if err != nil {
		return err //nolint:wrapcheck // Read wraps it
	}
	if token != want {
		return fmt.Errorf("unexpected token %v, want %v", token, want)
	}
	return nil
}

// The fields of runtime.Unknown, and of every list, in protobuf.
const (
	unknownType protowire.Number = 1
	unknownRaw  protowire.Number = 2
	listItems   protowire.Number = 2
)

var errNoList = errors.New("the response is not a list in protobuf")

// listProtobuf reads a list in protobuf and returns it reduced.
func (r *replyReducer) listProtobuf(from *bufio.Reader, kind schema.GroupKind) ([]byte, error) {
	list := make([]byte, len(magic))
	if _, err := io.ReadFull(from, list); err != nil || !bytes.Equal(list, magic) {
		return nil, errors.Join(errNoList, err)
	}
	var about runtime.TypeMeta
	for {
		number, size, err := nextField(from)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		var value []byte
		if number == unknownRaw {
			about.Kind = strings.TrimSuffix(about.Kind, "List")
			value, err = r.itemsProtobuf(bufio.NewReader(io.LimitReader(from, size)), kind, about)
		} else {
			value, err = fieldValue(from, size, maxListHead)
		}
		if err != nil {
			return nil, err
		}
		if number == unknownType {
			if err := about.Unmarshal(value); err != nil {
				return nil, errors.Join(errNoList, err)
			}
		}
		list = protowire.AppendBytes(protowire.AppendTag(list, number, protowire.BytesType), value)
	}
}

// itemsProtobuf reads the fields of a list, whose items have a type, and returns them reduced.
func (r *replyReducer) itemsProtobuf(from *bufio.Reader, kind schema.GroupKind, about runtime.TypeMeta) ([]byte, error) {
	var list []byte
	for {
		number, size, err := nextField(from)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		value, err := fieldValue(from, size, maxReduced)
		if err != nil {
			return nil, err
		}
		if number == listItems && size > maxItem {
			if value, err = r.itemProtobuf(value, kind, about); err != nil {
				return nil, err
			}
		}
		list = protowire.AppendBytes(protowire.AppendTag(list, number, protowire.BytesType), value)
	}
}

// itemProtobuf reduces an item of a list, which has no type of its own.
func (r *replyReducer) itemProtobuf(item []byte, kind schema.GroupKind, about runtime.TypeMeta) ([]byte, error) {
	typed, err := (&runtime.Unknown{TypeMeta: about, Raw: item}).Marshal()
	if err != nil {
		return nil, fmt.Errorf("encoding an item: %w", err)
	}
	var left runtime.Unknown
	if err := left.Unmarshal(r.reduceItem(append(bytes.Clone(magic), typed...), r.protobuf, kind, false)[len(magic):]); err != nil {
		return nil, fmt.Errorf("decoding a reduced item: %w", err)
	}
	return left.Raw, nil
}

// nextField reads the number and the size of the next field, all of which have a size. The error is io.EOF if
// there is none.
func nextField(from *bufio.Reader) (number protowire.Number, size int64, err error) {
	tag, err := binary.ReadUvarint(from)
	if err != nil {
		return 0, 0, err //nolint:wrapcheck // callers check for io.EOF
	}
	number, wire := protowire.DecodeTag(tag)
	length, err := binary.ReadUvarint(from)
	if err != nil || number <= 0 || wire != protowire.BytesType || length > maxList {
		return 0, 0, errors.Join(errNoList, unexpected(err))
	}
	return number, int64(length), nil
}

// fieldValue reads the value of a field.
func fieldValue(from io.Reader, size, most int64) ([]byte, error) {
	if size > most {
		return nil, fmt.Errorf("a field has %d bytes, at most %d are read", size, most)
	}
	value := make([]byte, size)
	_, err := io.ReadFull(from, value)
	return value, unexpected(err)
}

// unexpected returns the error of a reply that ends within a field.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
