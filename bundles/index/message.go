package index

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/chandlery/chandlery/proto/api"
)

// Message is an encoded protobuf message in parts: the message is their
// concatenation. The parts are shared and must not be changed.
type Message [][]byte

// Len returns the length of the encoded message in bytes.
func (m Message) Len() int {
	n := 0
	for _, part := range m {
		n += len(part)
	}
	return n
}

// Bytes returns the message in one piece. It copies; use it where parts will
// not do.
func (m Message) Bytes() []byte {
	out := make([]byte, 0, m.Len())
	for _, part := range m {
		out = append(out, part...)
	}
	return out
}

// Field numbers of api.Bundle whose values can be large.
const (
	fieldCSVJSON protowire.Number = 4
	fieldObject  protowire.Number = 5
)

// payload is the large part of a bundle, csvJson and object, which all
// channels share.
type payload [][]byte

func newPayload(csv []byte, objects [][]byte) payload {
	out := make(payload, 0, 2*(1+len(objects)))
	if len(csv) > 0 {
		out = append(out, fieldHeader(fieldCSVJSON, len(csv)), csv)
	}
	for _, object := range objects {
		out = append(out, fieldHeader(fieldObject, len(object)), object)
	}
	return out
}

// size is what the payload takes in memory: a manifest that is both csvJson and
// an object is there once.
func (p payload) size() int64 {
	var n int64
	seen := make(map[*byte]bool, len(p))
	for _, part := range p {
		if len(part) > 0 && !seen[&part[0]] {
			seen[&part[0]] = true
			n += int64(len(part))
		}
	}
	return n
}

func fieldHeader(field protowire.Number, length int) []byte {
	out := protowire.AppendTag(nil, field, protowire.BytesType)
	return protowire.AppendVarint(out, uint64(length)) //nolint:gosec // a length is never negative
}

// encodeEdge encodes one answer of the RPCs that stream channel entries.
func encodeEdge(key entryKey, replaces string) (Message, error) {
	encoded, err := marshal(&api.ChannelEntry{
		PackageName: key.pkg, ChannelName: key.channel, BundleName: key.bundle, Replaces: replaces,
	})
	return Message{encoded}, err
}
