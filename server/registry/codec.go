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

// codecName is the content subtype of clients.
const codecName = "proto"

// Outgoing is a message that a server tracks until the client has taken it.
type Outgoing interface {
	// Message returns the message itself.
	Message() any
	// Queued is called when the message has been encoded.
	Queued()
	// Gone is called when gRPC has written the message or dropped it.
	Gone()
}

// Codec returns the codec that a server of a [Service] must use. It passes encoded messages, passed
// as *[index.Message], through and treats all others as protobuf messages, so other services on the
// same server work as usual. Messages may be passed as an [Outgoing].
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

// encoded returns a message of an index as buffers for gRPC. It returns an error if the message can
// no longer be read.
func encoded(message *index.Message, outgoing Outgoing) (out mem.BufferSlice, err error) {
	err = index.Guard(func() error {
		if IsBorrowed(message) {
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

// IsBorrowed reports whether gRPC reads parts of an encoded message from the index without a copy.
func IsBorrowed(message *index.Message) bool { return message.Len() > copiedSize }

// followed encodes a message into one buffer.
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
	// copiedSize is the size up to which a message is copied, in bytes. Handling its parts would take longer.
	copiedSize = 4 << 10
	// borrowedSize is the size from which a part of a larger message is not copied, in bytes. It
	// must exceed the size below which gRPC does not track buffers.
	borrowedSize = 2 << 10
)

// copied is a buffer for a message in one piece. It is reused after the message was sent. gRPC
// clears its own buffers each time, which costs more than the copy.
type copied struct {
	data []byte
	// outgoing is the message; nil if it is not tracked.
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

// queue returns the buffer for gRPC.
func (c *copied) queue() mem.BufferSlice {
	if c.outgoing != nil {
		c.outgoing.Queued()
	}
	return mem.BufferSlice{mem.NewBuffer(&c.data, c)}
}

// Get implements [mem.BufferPool]. gRPC does not call it for this pool.
func (*copied) Get(length int) *[]byte { return newBytes(length) }

// Put implements [mem.BufferPool]. gRPC calls it when it is done with the message.
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

// borrowed returns a message whose large parts stay in the index. The index stays mapped until gRPC
// has sent the parts or dropped their connection.
func borrowed(message *index.Message, outgoing Outgoing) mem.BufferSlice {
	large, small := 0, 0
	for part := range message.Parts() {
		if len(part) >= borrowedSize {
			large++
		} else {
			small += len(part)
		}
	}
	k := &ownerRef{owner: message.Owner(), outgoing: outgoing, parts: make([][]byte, 0, large+1)}
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
		// gRPC releases only buffers that have some capacity.
		out = append(out, k.add(pending))
	}
	if outgoing != nil {
		outgoing.Queued()
	}
	return out
}

// ownerRef keeps the owner of borrowed parts alive while gRPC refers to them. It serves as the pool
// of the parts. The last part of a message is one of them.
type ownerRef struct {
	owner    any
	outgoing Outgoing
	parts    [][]byte
	// released is how many parts gRPC has written or dropped.
	released atomic.Int64
}

// add returns a part as a buffer of this pool. There must be room in k.parts.
func (k *ownerRef) add(part []byte) mem.Buffer {
	k.parts = append(k.parts, part)
	return mem.NewBuffer(&k.parts[len(k.parts)-1], k)
}

// Get implements [mem.BufferPool]. gRPC does not call it for this pool.
func (*ownerRef) Get(length int) *[]byte { return newBytes(length) }

// Put implements [mem.BufferPool].
func (k *ownerRef) Put(*[]byte) {
	if k.released.Add(1) == int64(len(k.parts)) && k.outgoing != nil {
		k.outgoing.Gone()
	}
}
