package extension

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/index"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
)

// Field numbers of Bundle and of the list of bundles in a page. Fields that api.Bundle also has keep its numbers.
const (
	fieldName         protowire.Number = 1
	fieldPackage      protowire.Number = 2
	fieldChannel      protowire.Number = 3
	fieldCSVJSON      protowire.Number = 4
	fieldObject       protowire.Number = 5
	fieldProvidedAPIs protowire.Number = 7
	fieldVersion      protowire.Number = 9
	fieldDeprecation  protowire.Number = 15
	fieldIsHead       protowire.Number = 16
	fieldInDefault    protowire.Number = 17
	fieldBundles      protowire.Number = 1
)

// listedBundle is a bundle of a listing: the fields that filters use, and the encoding without manifests.
type listedBundle struct {
	name, pkg, channel, version string
	deprecated                  bool
	// provided are the encoded APIs.
	provided [][]byte
	encoded  []byte
}

// readBundle reads an encoded api.Bundle. The result shares no memory with the index.
func readBundle(message index.Message) (listedBundle, error) {
	var out listedBundle
	rest := message.Bytes()
	out.encoded = make([]byte, 0, len(rest))
	for len(rest) > 0 {
		number, kind, n := protowire.ConsumeField(rest)
		if n < 0 {
			return listedBundle{}, fmt.Errorf("reading bundle %q: %w", out.name, protowire.ParseError(n))
		}
		field := rest[:n]
		rest = rest[n:]
		if number == fieldCSVJSON || number == fieldObject {
			continue
		}
		if kind == protowire.BytesType {
			_, _, skip := protowire.ConsumeTag(field)
			value, _ := protowire.ConsumeBytes(field[skip:])
			out.storeField(number, value)
		}
		out.encoded = append(out.encoded, field...)
	}
	return out, nil
}

// storeField stores a field that filters use.
func (b *listedBundle) storeField(number protowire.Number, value []byte) {
	switch number {
	case fieldName:
		b.name = string(value)
	case fieldPackage:
		b.pkg = string(value)
	case fieldChannel:
		b.channel = string(value)
	case fieldVersion:
		b.version = string(value)
	case fieldProvidedAPIs:
		b.provided = append(b.provided, value)
	case fieldDeprecation:
		b.deprecated = true
	default: // no filter uses it
	}
}

// provides reports whether the bundle provides an API.
func (b *listedBundle) provides(api bundles.GVK) (bool, error) {
	for _, encoded := range b.provided {
		var got registryv1.GroupVersionKind
		if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(encoded, &got); err != nil {
			return false, fmt.Errorf("reading the APIs of bundle %q: %w", b.name, err)
		}
		if gvkOf(&got) == api {
			return true, nil
		}
	}
	return false, nil
}

func gvkOf(api *registryv1.GroupVersionKind) bundles.GVK {
	return bundles.GVK{Group: api.GetGroup(), Version: api.GetVersion(), Kind: api.GetKind()}
}

// position is the position of a bundle in its package.
type position struct {
	head, inDefault, deprecated bool
}

// appendTo adds the bundle to an encoded page.
func (b *listedBundle) appendTo(page []byte, at position) []byte {
	encoded := b.encoded
	if at.head {
		encoded = protowire.AppendVarint(protowire.AppendTag(encoded, fieldIsHead, protowire.VarintType), 1)
	}
	if at.inDefault {
		encoded = protowire.AppendVarint(protowire.AppendTag(encoded, fieldInDefault, protowire.VarintType), 1)
	}
	page = protowire.AppendTag(page, fieldBundles, protowire.BytesType)
	return protowire.AppendBytes(page, encoded)
}
