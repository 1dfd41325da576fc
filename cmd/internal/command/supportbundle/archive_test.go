package supportbundle

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestArchiveIsTheSameWhateverTheOrder(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 5, 9, 0, 0, 7, time.UTC)
	one, other := contents{room: 10}, contents{room: 10}
	one.add("a", []byte("1"))
	one.add("b", []byte("2"))
	other.add("b", []byte("2"))
	other.add("a", []byte("1"))
	var first, second bytes.Buffer
	if err := errors.Join(one.write(&first, "root", at), other.write(&second, "root", at)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same files give other bytes")
	}
}

func TestRoomIsKept(t *testing.T) {
	t.Parallel()
	c := contents{room: 3}
	c.add("a", []byte("12"))
	c.add("b", []byte("34"))
	c.add("c", []byte("5"))
	if len(c.files) != 2 || len(c.left) != 1 || !strings.HasPrefix(c.left[0], "b: left out") {
		t.Errorf("%+v", c)
	}
}

func TestFileIsThereWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := contents{room: 3}
	c.add("a", []byte("12"))
	if err := c.writeFile(filepath.Join(dir, "taken"), "root", time.Time{}); err == nil {
		t.Error("a folder is replaced")
	}
	if err := c.writeFile(filepath.Join(dir, "bundle"), "root", time.Time{}); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		reason string
		stream io.Reader
		limit  int64
		want   string
		whole  bool
		err    error
	}{
		"Short": {reason: "what fits is whole", stream: strings.NewReader("a\nb\n"), limit: 4, want: "a\nb\n", whole: true},
		"Long":  {reason: "else it is the end, from a line on", stream: strings.NewReader("aaa\nbbb\nccc\n"), limit: 9, want: "bbb\nccc\n"},
		"Bytes": {reason: "however it arrives", stream: iotest.OneByteReader(strings.NewReader("aaa\nbbb\nccc\n")), limit: 6, want: "ccc\n"},
		"Error": {reason: "what arrived before an error is kept", stream: io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(broken)), limit: 9, want: "a\n", whole: true, err: broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end, whole, err := tail(tt.stream, tt.limit)
			if string(end) != tt.want || whole != tt.whole || !errors.Is(err, tt.err) {
				t.Errorf("%s: %q, %v, %v", tt.reason, end, whole, err)
			}
		})
	}
}

func TestPart(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"a.b": "a.b", "../x": ".._x", "..": "_", "": "_", "system:x\n": "system_x_"} {
		if got := part(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
