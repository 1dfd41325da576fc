package image

import (
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// checkedBlob is a blob that is checked while it is read. A read fails at the end if the size or
// the digest is wrong, and as soon as there are too many bytes.
type checkedBlob struct {
	io.ReadCloser

	hash hash.Hash
	want v1.Descriptor
	read int64
}

var (
	errTruncated   = errors.New("ends early")
	errOverlong    = errors.New("is longer than its manifest says")
	errWrongDigest = errors.New("has another digest than its manifest says")
)

func (b *checkedBlob) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.hash.Write(p[:n])
	b.read += int64(n)
	if b.read > b.want.Size {
		return 0, fmt.Errorf("blob %s %w: more than %d bytes", b.want.Digest, errOverlong, b.want.Size)
	}
	switch {
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF):
		return n, fmt.Errorf("blob %s: %w", b.want.Digest, err)
	}
	if b.read < b.want.Size {
		return 0, fmt.Errorf("blob %s %w: after %d of %d bytes", b.want.Digest, errTruncated, b.read, b.want.Size)
	}
	if got := hex.EncodeToString(b.hash.Sum(nil)); got != b.want.Digest.Hex {
		return 0, fmt.Errorf("blob %s %w: %s", b.want.Digest, errWrongDigest, got)
	}
	return n, io.EOF
}
