package replicas

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	// maxFields limits the fields of one message from a catalog, with those of nested messages. An empty nested message
	// has two bytes, and takes a hundred in memory. The largest messages of real catalogs have some thousand.
	maxFields = 1_000_000
	// maxDepth is the nesting below which fields count.
	maxDepth = 100
)

// boundedCodec is gRPC's codec. It refuses messages with too many fields before it decodes them.
type boundedCodec struct{ encoding.CodecV2 }

func newBoundedCodec() boundedCodec { return boundedCodec{encoding.GetCodecV2(protocodec.Name)} }

// errManyFields is the error of a message with more than maxFields. gRPC gives it the code Internal.
var errManyFields = fmt.Errorf("the message has more than %d fields", maxFields)

// Unmarshal decodes a message. The error is errManyFields for too many fields.
func (c boundedCodec) Unmarshal(data mem.BufferSlice, v any) error {
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	if message, is := v.(proto.Message); is && fields(buffer.ReadOnlyData(), message.ProtoReflect().Descriptor(), maxDepth) > maxFields {
		return errManyFields
	}
	return c.CodecV2.Unmarshal(mem.BufferSlice{buffer}, v) //nolint:wrapcheck // the codec of gRPC, whose caller adds the context
}

// fields returns the number of fields of an encoded message, with those of nested messages up to a depth. It stops where the
// message is invalid, and soon after maxFields.
func fields(encoded []byte, kind protoreflect.MessageDescriptor, depth int) int {
	count := 0
	for len(encoded) > 0 && count <= maxFields {
		number, wire, n := protowire.ConsumeTag(encoded)
		if n < 0 {
			return count
		}
		size := protowire.ConsumeFieldValue(number, wire, encoded[n:])
		if size < 0 {
			return count
		}
		count++
		field := kind.Fields().ByNumber(number)
		if wire == protowire.BytesType && depth > 0 && field != nil && field.Message() != nil {
			inner, _ := protowire.ConsumeBytes(encoded[n:])
			count += fields(inner, field.Message(), depth-1)
		}
		encoded = encoded[n+size:]
	}
	return count
}
