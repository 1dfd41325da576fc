package replicas

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/chandlery/chandlery/proto/api"
)

// TestBoundedCodec decodes messages whose fields take much more memory than bytes.
func TestBoundedCodec(t *testing.T) {
	t.Parallel()
	const properties = 12
	empty := protowire.AppendBytes(protowire.AppendTag(nil, properties, protowire.BytesType), nil)
	for name, tt := range map[string]struct {
		encoded []byte
		into    proto.Message
		refused bool
	}{
		"Few":     {bytes.Repeat(empty, 1000), &api.Bundle{}, false},
		"Limit":   {bytes.Repeat(empty, maxFields), &api.Bundle{}, false},
		"Many":    {bytes.Repeat(empty, maxFields+1), &api.Bundle{}, true},
		"Nested":  {protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), bytes.Repeat([]byte{0x0a, 0}, maxFields+1)), &api.Package{}, true},
		"Text":    {protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), string(bytes.Repeat([]byte("a"), 8<<20))), &api.Bundle{}, false},
		"Invalid": {[]byte{0xff}, &api.Bundle{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			half := len(tt.encoded) / 2
			err := newBoundedCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(tt.encoded[:half]), mem.SliceBuffer(tt.encoded[half:])}, tt.into)
			if errors.Is(err, errManyFields) != tt.refused || (err != nil) != (tt.refused || name == "Invalid") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestBoundedCodecRoundTrip encodes and decodes a message.
func TestBoundedCodecRoundTrip(t *testing.T) {
	t.Parallel()
	sent := &api.Bundle{CsvName: "lamp.v1", Properties: []*api.Property{{Type: "olm.package", Value: "{}"}}}
	encoded, err := newBoundedCodec().Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	received := &api.Bundle{}
	if err := newBoundedCodec().Unmarshal(encoded, received); err != nil || !proto.Equal(sent, received) {
		t.Errorf("got %v, want %v: %v", received, sent, err)
	}
}
