package compressed_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/compressed"
)

var texts = map[string][]string{
	"Nothing":   {},
	"Empty":     {""},
	"One":       {"abc"},
	"Several":   {"[", `{"a":"` + strings.Repeat("long ", 50_000) + `"}`, ",", `{"b":1}`, "]"},
	"LongPlain": {strings.Repeat("x", 200_000), "y"},
}

// compress returns every second text in compressed form, outside the heap.
func compress(t *testing.T, parts []string) []*compressed.Text {
	t.Helper()
	compressor, err := compressed.NewCompressor()
	if err != nil {
		t.Fatal(err)
	}
	var out []*compressed.Text
	for i, part := range parts {
		if i%2 == 0 {
			continue
		}
		text, err := compressor.Compress([]byte(part))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, &text)
	}
	if err := compressed.Move(out); err != nil {
		t.Fatal(err)
	}
	return out
}

// body writes every second text in compressed form.
func body(t *testing.T, out io.Writer, parts []string, packed bool) error {
	t.Helper()
	stored := compress(t, parts)
	b := compressed.NewBody(out, packed)
	for i, part := range parts {
		if i%2 == 0 {
			b.Plain([]byte(part))
			continue
		}
		text := *stored[i/2]
		got, err := text.Bytes()
		if err != nil || string(got) != part {
			t.Errorf("text %d is %d bytes after decompression, want %d: %v", i, len(got), len(part), err)
		}
		b.Text(text)
	}
	return b.End()
}

// TestBody checks that a body has the joined texts. The reader compares the checksum and the length of gzip.
func TestBody(t *testing.T) {
	t.Parallel()
	for name, parts := range texts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := strings.Join(parts, "")
			var plain, packed bytes.Buffer
			if err := body(t, &plain, parts, false); err != nil || plain.String() != want {
				t.Errorf("%d bytes without coding, want %d: %v", plain.Len(), len(want), err)
			}
			if err := body(t, &packed, parts, true); err != nil {
				t.Fatal(err)
			}
			reader, err := gzip.NewReader(&packed)
			if err != nil {
				t.Fatal(err)
			}
			reader.Multistream(false)
			got, err := io.ReadAll(reader)
			if err != nil || string(got) != want {
				t.Errorf("%d bytes with gzip, want %d: %v", len(got), len(want), err)
			}
			if packed.Len() != 0 {
				t.Errorf("%d bytes follow the stream", packed.Len())
			}
		})
	}
}

// TestMemoryLivesWithTexts checks that a text can be read after all others of its memory are gone.
func TestMemoryLivesWithTexts(t *testing.T) {
	t.Parallel()
	const want = "stays"
	last := compress(t, []string{"", "goes", "", want})[1]
	for range 3 {
		runtime.GC()
	}
	if got, err := last.Bytes(); err != nil || string(got) != want {
		t.Errorf("text %q, %v, want %q", got, err, want)
	}
}

var errClosed = errors.New("closed")

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, errClosed }

func TestBodyReturnsError(t *testing.T) {
	t.Parallel()
	for _, packed := range []bool{false, true} {
		if err := body(t, closed{}, texts["Several"], packed); !errors.Is(err, errClosed) {
			t.Errorf("gzip %t: %v", packed, err)
		}
	}
}
