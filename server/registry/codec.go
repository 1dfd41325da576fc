package registry

import (
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip"  // clients may send compressed requests
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that Codec extends
	"google.golang.org/grpc/mem"

	"github.com/chandlery/chandlery/bundles/index"
)

// codecName is the content subtype that clients ask for.
const codecName = "proto"

// Outgoing is a message that a server follows on its way to the client.
type Outgoing interface {
	// Message returns the message itself.
	Message() any
	// Queued is called when the message has been encoded.
	Queued()
	// Gone is called when gRPC has written the message or dropped it.
	Gone()
}

// Codec returns the codec that a server of a [Service] must use. It passes
// encoded messages, given as *[index.Message], through and treats all others as
// protobuf messages, so other services on the same server work as ever. Messages
// may be given as an [Outgoing].
func Codec() encoding.CodecV2 {
	return codec{CodecV2: encoding.GetCodecV2(codecName)}
}

type codec struct {
	encoding.CodecV2
}

// Marshal implements [encoding.CodecV2].
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	outgoing, followed := v.(Outgoing)
	if followed {
		v = outgoing.Message()
	}
	message, ok := v.(*index.Message)
	switch {
	case ok:
		return encoded(message, outgoing)
	case followed:
		return c.followed(v, outgoing)
	default:
		return c.CodecV2.Marshal(v)
	}
}

// encoded returns a message of an index as gRPC takes it. What cannot be read any
// more is an error.
func encoded(message *index.Message, outgoing Outgoing) (out mem.BufferSlice, err error) {
	err = index.Guard(func() error {
		if Borrows(message) {
			out = borrowed(message, outgoing)
			return nil
		}
		buffer := newCopied(outgoing)
		buffer.data = message.AppendTo(buffer.data)
		out = buffer.queue()
		return nil
	})
	return out, err
}

// Borrows reports whether gRPC reads parts of a message where they lie, when it has
// been encoded already.
func Borrows(message *index.Message) bool { return message.Len() > copiedSize }

// followed returns a message that is encoded here, in one piece.
func (c codec) followed(v any, outgoing Outgoing) (mem.BufferSlice, error) {
	encoded, err := c.CodecV2.Marshal(v)
	if err != nil {
		return nil, err
	}
	buffer := newCopied(outgoing)
	for _, part := range encoded {
		buffer.data = append(buffer.data, part.ReadOnlyData()...)
	}
	encoded.Free()
	return buffer.queue(), nil
}

const (
	// copiedSize is the size up to which a message is copied: handling its
	// parts would take longer.
	copiedSize = 4 << 10
	// borrowedSize is the size from which on a part of a larger message is not
	// copied. It must be more than what gRPC takes for too small to keep track of.
	borrowedSize = 2 << 10
)

// copied is a buffer for a message in one piece, which is used again once the
// message has been sent. Those of gRPC are cleared each time, which costs more
// than what is copied here.
type copied struct {
	data []byte
	// outgoing is the message; nil if it is not followed.
	outgoing Outgoing
}

var copies = sync.Pool{New: func() any { return &copied{data: make([]byte, 0, copiedSize)} }}

func newCopied(outgoing Outgoing) *copied {
	c, ok := copies.Get().(*copied)
	if !ok {
		c = &copied{data: make([]byte, 0, copiedSize)}
	}
	c.data, c.outgoing = c.data[:0], outgoing
	return c
}

// queue returns the buffer as gRPC takes it.
func (c *copied) queue() mem.BufferSlice {
	if c.outgoing != nil {
		c.outgoing.Queued()
	}
	return mem.BufferSlice{mem.NewBuffer(&c.data, c)}
}

// Get implements [mem.BufferPool]; nothing is taken from here.
func (*copied) Get(length int) *[]byte { return newBytes(length) }

// Put implements [mem.BufferPool]: the message is gone.
func (c *copied) Put(*[]byte) {
	if c.outgoing != nil {
		c.outgoing.Gone()
		c.outgoing = nil
	}
	if cap(c.data) == copiedSize {
		copies.Put(c)
	}
}

func newBytes(length int) *[]byte {
	fresh := make([]byte, length)
	return &fresh
}

// borrowed returns a message whose large parts stay where they are: in the
// index, which is kept from being unmapped until they have been sent, or until
// the connection that they were meant for is forgotten.
func borrowed(message *index.Message, outgoing Outgoing) mem.BufferSlice {
	large, small := 0, 0
	for part := range message.Parts() {
		if len(part) >= borrowedSize {
			large++
		} else {
			small += len(part)
		}
	}
	k := &keeper{owner: message.Owner(), outgoing: outgoing, parts: make([][]byte, 0, large+1)}
	out := make(mem.BufferSlice, 0, 2*large+1)
	pending := make([]byte, 0, small+borrowedSize)
	for part := range message.Parts() {
		if len(part) < borrowedSize {
			pending = append(pending, part...)
			continue
		}
		if len(pending) > 0 {
			out = append(out, mem.SliceBuffer(pending))
			pending = pending[len(pending):]
		}
		out = append(out, k.add(part))
	}
	if len(pending) > 0 {
		// gRPC releases only what has some capacity.
		out = append(out, k.add(pending))
	}
	if outgoing != nil {
		outgoing.Queued()
	}
	return out
}

// keeper refers to the owner of borrowed parts as long as gRPC refers to it, as
// the pool that it thinks they come from. The last part of a message is one of
// them.
type keeper struct {
	owner    any
	outgoing Outgoing
	parts    [][]byte
	// released is how many parts gRPC has written or dropped.
	released atomic.Int64
}

// add returns a part as gRPC takes it. There must be room in k.parts.
func (k *keeper) add(part []byte) mem.Buffer {
	k.parts = append(k.parts, part)
	return mem.NewBuffer(&k.parts[len(k.parts)-1], k)
}

// Get implements [mem.BufferPool]; nothing is taken from a keeper.
func (*keeper) Get(length int) *[]byte { return newBytes(length) }

// Put implements [mem.BufferPool].
func (k *keeper) Put(*[]byte) {
	if k.released.Add(1) == int64(len(k.parts)) && k.outgoing != nil {
		k.outgoing.Gone()
	}
}
