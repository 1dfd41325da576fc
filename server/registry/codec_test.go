package registry

import (
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/proto/api"
)

func message(m index.Message) *index.Message { return &m }

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
		"Message": {reason: "encoded messages pass in parts", value: message(index.NewMessage(encoded[:2], nil, encoded[2:]))},
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

// TestDescription wants the service to have exactly the methods of the
// contract.
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
