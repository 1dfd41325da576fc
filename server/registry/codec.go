package registry

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip"  // clients may ask for compressed answers
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that Codec extends
	"google.golang.org/grpc/mem"

	"github.com/chandlery/chandlery/bundles/index"
)

// codecName is the content subtype that clients ask for.
const codecName = "proto"

// Codec returns the codec that a server of a [Service] must use. It passes
// encoded messages through and treats all others as protobuf messages, so
// other services on the same server work as ever.
func Codec() encoding.CodecV2 {
	return codec{CodecV2: encoding.GetCodecV2(codecName)}
}

type codec struct {
	encoding.CodecV2
}

// Marshal implements [encoding.CodecV2]. The parts of an encoded message are
// not copied; the index that they belong to never changes.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	message, ok := v.(index.Message)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	out := make(mem.BufferSlice, len(message))
	for i, part := range message {
		out[i] = mem.SliceBuffer(part)
	}
	return out, nil
}
