package index

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// The messages of the api.Registry contract are written and read field by field, without the
// generated types. Two packages with generated types of one contract cannot be linked into one
// program, and operator-registry has one. The field numbers come from proto/registry.proto, which
// is frozen. Tests compare the encoding with the generated types, byte by byte.

// api.Package and its messages.
const (
	packageFieldName           protowire.Number = 1
	packageFieldChannels       protowire.Number = 2
	packageFieldDefaultChannel protowire.Number = 3
	packageFieldDeprecation    protowire.Number = 4

	channelFieldName        protowire.Number = 1
	channelFieldCSVName     protowire.Number = 2
	channelFieldDeprecation protowire.Number = 3
)

// api.Bundle. The values of csvJson and object can be large.
const (
	bundleFieldCSVName      protowire.Number = 1
	bundleFieldPackageName  protowire.Number = 2
	bundleFieldChannelName  protowire.Number = 3
	bundleFieldCSVJSON      protowire.Number = 4
	bundleFieldObject       protowire.Number = 5
	bundleFieldBundlePath   protowire.Number = 6
	bundleFieldProvidedAPIs protowire.Number = 7
	bundleFieldRequiredAPIs protowire.Number = 8
	bundleFieldVersion      protowire.Number = 9
	bundleFieldSkipRange    protowire.Number = 10
	bundleFieldDependencies protowire.Number = 11
	bundleFieldProperties   protowire.Number = 12
	bundleFieldReplaces     protowire.Number = 13
	bundleFieldSkips        protowire.Number = 14
	bundleFieldDeprecation  protowire.Number = 15
)

// api.ChannelEntry, and the fields of messages of one or two strings: api.Dependency,
// api.Property, api.Deprecation and api.PackageName.
const (
	entryFieldPackageName protowire.Number = 1
	entryFieldChannelName protowire.Number = 2
	entryFieldBundleName  protowire.Number = 3
	entryFieldReplaces    protowire.Number = 4

	firstField  protowire.Number = 1
	secondField protowire.Number = 2
)

// errNotUTF8 means that a text cannot be a string of a message.
var errNotUTF8 = errors.New("text is not valid UTF-8")

// wire is an encoded message under construction. Fields are appended in the order of their numbers.
type wire struct {
	out []byte
	err error
}

// newWire returns a message with room for some texts.
func newWire(texts ...string) wire {
	const each = 4 // the size of tag and length
	size := 0
	for _, text := range texts {
		size += each + len(text)
	}
	return wire{out: make([]byte, 0, size)}
}

// text appends a string. It omits an empty one.
func (w *wire) text(field protowire.Number, text string) {
	if text != "" {
		w.element(field, text)
	}
}

// element appends an element of a list of strings.
func (w *wire) element(field protowire.Number, text string) {
	if w.err == nil && !utf8.ValidString(text) {
		w.err = fmt.Errorf("field %d: %w", field, errNotUTF8)
	}
	w.out = protowire.AppendTag(w.out, field, protowire.BytesType)
	w.out = protowire.AppendString(w.out, text)
}

// texts appends a message of strings, whose fields are counted from one.
func (w *wire) texts(field protowire.Number, texts ...string) {
	size := 0
	for i, text := range texts {
		if text != "" {
			size += protowire.SizeTag(protowire.Number(i+1)) + protowire.SizeBytes(len(text))
		}
	}
	w.out = protowire.AppendTag(w.out, field, protowire.BytesType)
	w.out = protowire.AppendVarint(w.out, uint64(size))
	for i, text := range texts {
		w.text(protowire.Number(i+1), text)
	}
}

// pair appends a message of a type and a value, an api.Property or api.Dependency.
func (w *wire) pair(field protowire.Number, kind string, value []byte) {
	if w.err == nil && !utf8.Valid(value) {
		w.err = fmt.Errorf("field %d: %w", field, errNotUTF8)
	}
	size := 0
	if kind != "" {
		size += protowire.SizeTag(firstField) + protowire.SizeBytes(len(kind))
	}
	if len(value) > 0 {
		size += protowire.SizeTag(secondField) + protowire.SizeBytes(len(value))
	}
	w.out = protowire.AppendTag(w.out, field, protowire.BytesType)
	w.out = protowire.AppendVarint(w.out, uint64(size))
	w.text(firstField, kind)
	if len(value) > 0 {
		w.out = protowire.AppendTag(w.out, secondField, protowire.BytesType)
		w.out = protowire.AppendBytes(w.out, value)
	}
}

// deprecation appends the message of a deprecation; nil for none.
func (w *wire) deprecation(field protowire.Number, message *string) {
	if message != nil {
		w.texts(field, *message)
	}
}

// encoded returns the message.
func (w *wire) encoded(name string) ([]byte, error) {
	if w.err != nil {
		return nil, fmt.Errorf("encoding api.%s: %w", name, w.err)
	}
	return w.out, nil
}

// readFields calls visit with each field of a message. All fields of the contract are strings or messages.
func readFields(message []byte, visit func(field protowire.Number, value []byte) error) error {
	for len(message) > 0 {
		field, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return fmt.Errorf("decoding: %w", protowire.ParseError(tag))
		}
		message = message[tag:]
		length := protowire.ConsumeFieldValue(field, kind, message)
		if length < 0 {
			return fmt.Errorf("decoding: %w", protowire.ParseError(length))
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message)
			if err := visit(field, value); err != nil {
				return err
			}
		}
		message = message[length:]
	}
	return nil
}

// readText returns one string field of a message, such as an api.Deprecation.
func readText(message []byte, of protowire.Number) (string, error) {
	var out string
	err := readFields(message, func(field protowire.Number, value []byte) error {
		if field == of {
			out = string(value)
		}
		return nil
	})
	return out, err
}
