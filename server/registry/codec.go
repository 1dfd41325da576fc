package registry

import (
	"sync"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip"  // clients may ask for compressed answers
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that Codec extends
	"google.golang.org/grpc/mem"

	"github.com/chandlery/chandlery/bundles/index"
)

// codecName is the content subtype that clients ask for.
const codecName = "proto"

// Codec returns the codec that a server of a [Service] must use. It passes
// encoded messages, given as *[index.Message], through and treats all others as
// protobuf messages, so other services on the same server work as ever.
func Codec() encoding.CodecV2 {
	return codec{CodecV2: encoding.GetCodecV2(codecName)}
}

type codec struct {
	encoding.CodecV2
}

// Marshal implements [encoding.CodecV2].
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	message, ok := v.(*index.Message)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	if size := message.Len(); size <= copiedSize {
		return mem.BufferSlice{copied(message)}, nil
	}
	return borrowed(message), nil
}

const (
	// copiedSize is the size up to which a message is copied: handling its
	// parts would take longer.
	copiedSize = 4 << 10
	// borrowedSize is the size from which on a part of a larger message is not
	// copied. It must be more than what gRPC takes for too small to keep track of.
	borrowedSize = 2 << 10
)

// copies has buffers of copiedSize bytes. Those of gRPC are cleared each time,
// which costs more than what is copied here.
var copies bufferPool

type bufferPool struct{ sync.Pool }

// Get implements [mem.BufferPool].
func (p *bufferPool) Get(length int) *[]byte {
	buffer, ok := p.Pool.Get().(*[]byte)
	if !ok {
		fresh := make([]byte, copiedSize)
		buffer = &fresh
	}
	*buffer = (*buffer)[:length]
	return buffer
}

// Put implements [mem.BufferPool].
func (p *bufferPool) Put(buffer *[]byte) { p.Pool.Put(buffer) }

// copied returns a small message in one piece, in a buffer that is used again
// once the message has been sent.
func copied(message *index.Message) mem.Buffer {
	buffer := copies.Get(copiedSize)
	*buffer = message.AppendTo((*buffer)[:0])
	return mem.NewBuffer(buffer, &copies)
}

// borrowed returns a message whose large parts stay where they are: in the
// index, which is kept from being unmapped until they have been sent, or until
// the connection that they were meant for is forgotten.
func borrowed(message *index.Message) mem.BufferSlice {
	large, small := 0, 0
	for part := range message.Parts() {
		if len(part) >= borrowedSize {
			large++
		} else {
			small += len(part)
		}
	}
	k := &keeper{owner: message.Owner(), parts: make([][]byte, 0, large)}
	out := make(mem.BufferSlice, 0, 2*large+1)
	pending := make([]byte, 0, small)
	flush := func() {
		if len(pending) > 0 {
			out = append(out, mem.SliceBuffer(pending))
			pending = pending[len(pending):]
		}
	}
	for part := range message.Parts() {
		if len(part) < borrowedSize {
			pending = append(pending, part...)
			continue
		}
		flush()
		k.parts = append(k.parts, part)
		out = append(out, mem.NewBuffer(&k.parts[len(k.parts)-1], k))
	}
	flush()
	return out
}

// keeper refers to the owner of borrowed parts as long as gRPC refers to it, as
// the pool that it thinks they come from.
type keeper struct {
	owner any
	parts [][]byte
}

// Get implements [mem.BufferPool]; nobody takes from a keeper.
func (k *keeper) Get(length int) *[]byte {
	fresh := make([]byte, length)
	return &fresh
}

// Put implements [mem.BufferPool].
func (k *keeper) Put(*[]byte) {}
