package index

import (
	"iter"
	"runtime"
)

// Message is an encoded protobuf message in parts: the message is their concatenation. Its index
// stays mapped while the message is referenced.
type Message struct {
	owner *mapping
	// small holds the parts of messages with one or two, which need no list.
	small [2][]byte
	large [][]byte
}

// NewMessage returns a message made of parts that belong to no index.
func NewMessage(parts ...[]byte) Message { return Message{large: parts} }

// Parts returns the parts, which must not be changed. They are valid while the message or its
// [Message.Owner] is referenced: see [runtime.KeepAlive].
func (m Message) Parts() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, part := range m.small {
			if len(part) > 0 && !yield(part) {
				return
			}
		}
		for _, part := range m.large {
			if len(part) > 0 && !yield(part) {
				return
			}
		}
	}
}

// Owner returns the object that keeps the parts valid while it is referenced; nil if the parts need none.
func (m Message) Owner() any {
	if m.owner == nil {
		return nil
	}
	return m.owner
}

// Len returns the length of the encoded message in bytes.
func (m Message) Len() int {
	n := len(m.small[0]) + len(m.small[1])
	for _, part := range m.large {
		n += len(part)
	}
	return n
}

// AppendTo appends the message in one piece.
func (m Message) AppendTo(out []byte) []byte {
	out = append(append(out, m.small[0]...), m.small[1]...)
	for _, part := range m.large {
		out = append(out, part...)
	}
	runtime.KeepAlive(m.owner)
	return out
}

// Bytes returns a copy of the message in one piece.
func (m Message) Bytes() []byte { return m.AppendTo(make([]byte, 0, m.Len())) }
