package contentcache

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/proto/api"
)

// maxDecoded limits the messages that are decoded from one file, in bytes. A file can refer to one text many times.
const maxDecoded = 512 << 20

var errDecoded = fmt.Errorf("it holds more than %d bytes of messages", maxDecoded)

// decoder passes the messages of an index to functions.
type decoder struct {
	bundle  func(*api.Bundle) error
	pkg     func(*api.Package) error
	decoded int
}

// decodeOf decodes an index. It returns an error if the index is damaged or belongs to another key.
func (d *decoder) decodeOf(x *index.Index, k key) error {
	if x.Info().SourceDigest != k.hexDigest() {
		return fmt.Errorf("%w: it belongs to another CatalogSource or version of the supervisor", ErrUnusable)
	}
	err := index.Guard(func() error {
		if err := x.Check(); err != nil {
			return err //nolint:wrapcheck // wrapped below
		}
		return d.decode(x)
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	return nil
}

func (d *decoder) decode(x *index.Index) error {
	names := map[string]bool{}
	for message := range x.Bundles() {
		b := &api.Bundle{}
		if err := d.unmarshal(message, b); err != nil {
			return err
		}
		names[b.GetPackageName()] = true
		if err := d.bundle(b); err != nil {
			return err
		}
	}
	for name := range names {
		message, err := x.Package(name)
		if err != nil {
			return fmt.Errorf("package %s: %w", name, err)
		}
		p := &api.Package{}
		if err := d.unmarshal(message, p); err != nil {
			return err
		}
		if err := d.pkg(p); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) unmarshal(message index.Message, to proto.Message) error {
	if d.decoded += message.Len(); d.decoded > maxDecoded {
		return errDecoded
	}
	if err := proto.Unmarshal(message.Bytes(), to); err != nil {
		return errors.Join(index.ErrDamaged, err)
	}
	return nil
}
