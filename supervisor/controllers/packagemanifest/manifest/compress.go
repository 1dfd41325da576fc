package manifest

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// maxStatus is the maximum size of the status of one package, in bytes.
const maxStatus = 256 << 20

// decoder decodes all packages. It keeps one buffer for each concurrent call.
var decoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxStatus))
})

// Compressor compresses packages. Its memory is free when a catalog has been read.
type Compressor struct{ encoder *zstd.Encoder }

// NewCompressor returns a Compressor for one catalog.
func NewCompressor() (*Compressor, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("preparing to compress packages: %w", err)
	}
	return &Compressor{encoder: encoder}, nil
}

func (z *Compressor) compress(text []byte) []byte {
	return append([]byte(nil), z.encoder.EncodeAll(text, nil)...)
}

func decompress(data []byte) ([]byte, error) {
	d, err := decoder()
	if err != nil {
		return nil, fmt.Errorf("preparing to read packages: %w", err)
	}
	return d.DecodeAll(data, nil) //nolint:wrapcheck // the caller names the package
}
