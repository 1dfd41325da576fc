package wire

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// Size is the target of a reply whose size is counted and whose bytes are discarded.
type Size int

// Bytes is an encoded message: a recorded reply, or a request.
type Bytes []byte

// Codec returns a codec with the name of the protobuf codec. It sends *Bytes unchanged, and
// receives into *Bytes or *Size.
func Codec() encoding.CodecV2 { return codec{} }

type codec struct{}

// Name implements [encoding.CodecV2].
func (codec) Name() string { return "proto" }

// Marshal implements [encoding.CodecV2].
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	message, ok := v.(*Bytes)
	if !ok {
		return nil, fmt.Errorf("sending a %T: want *wire.Bytes", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*message)}, nil
}

// Unmarshal implements [encoding.CodecV2].
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch target := v.(type) {
	case *Size:
		*target = Size(data.Len())
	case *Bytes:
		*target = data.Materialize()
	default:
		return fmt.Errorf("receiving a %T: want *wire.Bytes or *wire.Size", v)
	}
	return nil
}
