package image

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/zstd"
)

// spool transfers a layer into a file and checks it. A layer is used only after all of it matches the manifest.
func (e *extraction) spool(ctx context.Context, d *v1.Descriptor, file *os.File, progress func(int64)) error {
	return e.session.retry(ctx, "fetching a layer", func() error {
		done := int64(0)
		err := e.copyBlob(ctx, d, file, func(n int64) {
			done += n
			progress(n)
		})
		if err != nil {
			progress(-done)
		}
		return err
	})
}

func (e *extraction) copyBlob(ctx context.Context, d *v1.Descriptor, file *os.File, progress func(int64)) error {
	if err := rewind(file); err != nil {
		return err
	}
	blob, err := e.session.blob(ctx, e.ref, d)
	if err != nil {
		return err
	}
	defer blob.Close() //nolint:errcheck // nothing was written
	to := &spoolFile{file: file, progress: progress}
	if _, err := io.CopyBuffer(to, struct{ io.Reader }{blob}, make([]byte, 64<<10)); err != nil {
		return fmt.Errorf("copying: %w", err)
	}
	return nil
}

func rewind(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return fail(ReasonLocal, "emptying a temporary file: %w", err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fail(ReasonLocal, "rewinding a temporary file: %w", err)
	}
	return nil
}

// spoolFile is a file whose errors are local failures.
type spoolFile struct {
	file     *os.File
	progress func(int64)
}

func (s *spoolFile) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	s.progress(int64(n))
	if err != nil {
		return n, &failure{ReasonLocal, fmt.Errorf("writing a layer: %w", err)}
	}
	return n, nil
}

const (
	// maxWindow bounds the memory for decompressing zstd.
	maxWindow   = 64 << 20
	readerBytes = 256 << 10
)

// decompress returns the tar stream of a layer. It detects the compression from the content,
// because some tools write wrong media types.
func decompress(from io.Reader) (io.Reader, func(), error) {
	buffered := bufio.NewReaderSize(from, readerBytes)
	start, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, fmt.Errorf("reading layer: %w", err)
	}
	switch {
	case bytes.HasPrefix(start, []byte{0x1f, 0x8b}):
		reader, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, nil, fmt.Errorf("decompressing layer: %w", err)
		}
		return reader, func() { _ = reader.Close() }, nil
	case bytes.HasPrefix(start, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		reader, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, fmt.Errorf("decompressing layer: %w", err)
		}
		return reader, reader.Close, nil
	default:
		return buffered, func() {}, nil
	}
}

// bounded ends a stream with an error if ctx ends or the stream exceeds the rest of a limit that
// several streams share.
type bounded struct {
	ctx   context.Context
	inner io.Reader
	left  *int64
	limit int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if err := context.Cause(b.ctx); err != nil {
		return 0, err //nolint:wrapcheck // the caller says what was being done
	}
	n, err := b.inner.Read(p)
	if *b.left -= int64(n); *b.left < 0 {
		return 0, fail(ReasonTooLarge, "%w: its layers unpack to more than %d bytes", errTooLarge, b.limit)
	}
	return n, err //nolint:wrapcheck // readers hand on what they read from
}

// entries visits the entries of a layer in turn.
func entries(ctx context.Context, layer io.Reader, left *int64, limit int64, visit func(*tar.Header, io.Reader) error) error {
	plain, closePlain, err := decompress(layer)
	if err != nil {
		return &failure{ReasonInvalid, err}
	}
	defer closePlain()
	reader := tar.NewReader(&bounded{ctx: ctx, inner: plain, left: left, limit: limit})
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return layerError(ctx, err)
		}
		if err := visit(header, reader); err != nil {
			return err
		}
	}
}

// layerError returns an error of a layer that matches its digest. The image is invalid, unless the
// cause is ctx or a limit.
func layerError(ctx context.Context, err error) error {
	if ReasonOf(err) != "" || context.Cause(ctx) != nil {
		return err
	}
	return fail(ReasonInvalid, "a layer cannot be unpacked: %w", err)
}
