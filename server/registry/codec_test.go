package registry

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/proto/api"
)

func TestCodec(t *testing.T) {
	want := &api.Package{Name: "p", DefaultChannelName: "stable"}
	encoded, err := proto.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		value  any
	}{
		"Message": {reason: "encoded messages pass in parts", value: new(index.NewMessage(encoded[:2], nil, encoded[2:]))},
		"Proto":   {reason: "other services send protobuf messages", value: want},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data, err := Codec().Marshal(tc.value)
			if err != nil {
				t.Fatal(err)
			}
			defer data.Free()
			got := &api.Package{}
			if err := Codec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(data.Materialize())}, got); err != nil || !proto.Equal(want, got) {
				t.Errorf("%s: got %v, %v", tc.reason, got, err)
			}
		})
	}
	if _, err := Codec().Marshal(3); err == nil {
		t.Error("a number is no message")
	}
}

// TestDescription checks that the service has exactly the methods of the contract.
func TestDescription(t *testing.T) {
	methods := map[string]bool{}
	for _, m := range description.Methods {
		methods[m.MethodName] = false
	}
	for _, s := range description.Streams {
		methods[s.StreamName] = s.ServerStreams
	}
	contract := api.File_registry_proto.Services().ByName("Registry").Methods()
	if contract.Len() != len(methods) {
		t.Errorf("got %d methods, want %d", len(methods), contract.Len())
	}
	for i := range contract.Len() {
		m := contract.Get(i)
		streams, ok := methods[string(m.Name())]
		if !ok || streams != m.IsStreamingServer() {
			t.Errorf("%s: there is %v, streams is %v", m.Name(), ok, streams)
		}
	}
}

// TestMarshalKeepsMessagesWhole covers the sizes at which messages and their parts are handled differently.
func TestMarshalKeepsMessagesWhole(t *testing.T) {
	sizes := []int{0, 1, borrowedSize - 1, borrowedSize, copiedSize - 1, copiedSize, copiedSize + 1, 3 * copiedSize}
	for _, first := range sizes {
		for _, second := range sizes {
			for _, third := range sizes {
				parts := [][]byte{bytes.Repeat([]byte("a"), first), bytes.Repeat([]byte("b"), second), bytes.Repeat([]byte("c"), third)}
				data, err := Codec().Marshal(new(index.NewMessage(parts...)))
				if err != nil {
					t.Fatal(err)
				}
				if got := data.Materialize(); !bytes.Equal(got, bytes.Join(parts, nil)) {
					t.Errorf("parts of %d, %d and %d bytes became %d other bytes", first, second, third, len(got))
				}
				data.Free()
			}
		}
	}
}

// TestMarshalUsesBuffersAgain checks that a copy is not overwritten before gRPC has sent it.
func TestMarshalUsesBuffersAgain(t *testing.T) {
	marshal := func(text string) mem.BufferSlice {
		data, err := Codec().Marshal(new(index.NewMessage([]byte(text))))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	kept := marshal("kept")
	for range 100 {
		marshal("other").Free()
	}
	if got := string(kept.Materialize()); got != "kept" {
		t.Errorf("a message became %q before it was sent", got)
	}
	kept.Free()
}

// The exact number of allocations of the codec. More would run the garbage collector more often
// where memory is short.
const (
	allocationsCopied   = 1 // the slice of buffers
	allocationsBorrowed = 5 // that, the small parts and their buffer, the keeper and its list
)

func TestMarshalAllocations(t *testing.T) {
	large := make([]byte, 2*copiedSize)
	for name, tc := range map[string]struct {
		message *index.Message
		want    float64
	}{
		"Copied":   {new(index.NewMessage(large[:100], large[:900])), allocationsCopied},
		"Borrowed": {new(index.NewMessage(large[:100], large[:900], large)), allocationsBorrowed},
	} {
		got := testing.AllocsPerRun(200, func() {
			data, err := Codec().Marshal(tc.message)
			if err != nil {
				t.Fatal(err)
			}
			data.Free()
		})
		if got != tc.want {
			t.Errorf("%s: %v allocations, want %v", name, got, tc.want)
		}
	}
}

// TestMarshalOfTruncatedFile encodes messages after their file was truncated.
func TestMarshalOfTruncatedFile(t *testing.T) {
	// A value of this size is mapped, not copied.
	value := `"` + strings.Repeat("x", 5<<20) + `"`
	catalog := fstest.MapFS{"c.json": {Data: []byte(`{"schema":"olm.package","name":"p","defaultChannel":"a"}
{"schema":"olm.channel","package":"p","name":"a","entries":[{"name":"b"}]}
{"schema":"olm.bundle","package":"p","name":"b","image":"i","properties":[
 {"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}},{"type":"big","value":` + value + `}]}`)}}
	reader, err := fbc.Open(t.Context(), catalog, fbc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	file := filepath.Join(t.TempDir(), "c.index")
	x, err := index.Create(t.Context(), file, reader, index.Options{})
	if err != nil {
		t.Fatal(err)
	}
	small, err := x.Package("p")
	if err != nil {
		t.Fatal(err)
	}
	large, err := x.Bundle("p", "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	if IsBorrowed(&small) || !IsBorrowed(&large) || large.CheckFile() != nil {
		t.Fatalf("messages of %d and %d bytes are not what this test needs", small.Len(), large.Len())
	}
	if err := os.Truncate(file, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Codec().Marshal(&small); !errors.Is(err, index.ErrDamaged) {
		t.Errorf("a message that is copied: got %v", err)
	}
	if err := large.CheckFile(); !errors.Is(err, index.ErrTruncated) {
		t.Errorf("a message that is borrowed: got %v", err)
	}
}
