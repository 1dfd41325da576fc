package replicas

import (
	"bytes"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
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
		code    codes.Code
	}{
		"Few":     {bytes.Repeat(empty, 1000), &api.Bundle{}, codes.OK},
		"Limit":   {bytes.Repeat(empty, maxFields), &api.Bundle{}, codes.OK},
		"Many":    {bytes.Repeat(empty, maxFields+1), &api.Bundle{}, codes.ResourceExhausted},
		"Nested":  {protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), bytes.Repeat([]byte{0x0a, 0}, maxFields+1)), &api.Package{}, codes.ResourceExhausted},
		"Text":    {protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), string(bytes.Repeat([]byte("a"), 8<<20))), &api.Bundle{}, codes.OK},
		"Invalid": {[]byte{0xff}, &api.Bundle{}, codes.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			half := len(tt.encoded) / 2
			err := newBoundedCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(tt.encoded[:half]), mem.SliceBuffer(tt.encoded[half:])}, tt.into)
			if got := status.Code(err); got != tt.code {
				t.Errorf("code %s, want %s: %v", got, tt.code, err)
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
