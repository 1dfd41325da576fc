package bundlelog

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// logOf returns the log of an archive.
func logOf(tb testing.TB, archive []byte) string {
	tb.Helper()
	var log strings.Builder
	if err := Write(&log, archive); err != nil {
		tb.Fatal(err)
	}
	return log.String()
}

// noise returns bytes of any value.
func noise(size int) []byte {
	out := make([]byte, size)
	for i := range out {
		out[i] = byte(i*i + i>>8)
	}
	return out
}

func TestReadReturnsWhatWasWritten(t *testing.T) {
	for _, size := range []int{0, 1, lineBytes - 1, lineBytes, lineBytes + 1, 3 * lineBytes, MaxBytes} {
		archive := noise(size)
		log := logOf(t, archive)
		if len(log) > MaxLogBytes {
			t.Errorf("%d bytes make a log of %d", size, len(log))
		}
		if got, err := Read(strings.NewReader(log)); err != nil || !bytes.Equal(got, archive) {
			t.Errorf("%d bytes: got %d, %v", size, len(got), err)
		}
	}
	if err := Write(&strings.Builder{}, noise(MaxBytes+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("an archive above the limit: %v", err)
	}
}

func TestReadRefusesOtherLogs(t *testing.T) {
	log := logOf(t, noise(3*lineBytes))
	lines := strings.SplitAfter(log, "\n")
	for name, c := range map[string]struct {
		log  string
		want error
	}{
		"empty":                 {"", ErrForeign},
		"of another program":    {"exec /utilities/registry: no such file or directory\n", ErrForeign},
		"without its beginning": {strings.Join(lines[2:], ""), ErrCut},
		"without its end":       {strings.Join(lines[:3], ""), ErrCut},
		"without its last byte": {log[:len(log)-1], ErrCut},
		"without a line":        {strings.Join(append(lines[:2:2], lines[3:]...), ""), ErrCut},
		"with a changed byte":   {strings.Replace(log, lines[2][:8], "AAAAAAAA", 1), ErrCut},
		"with another line":     {strings.Replace(log, lines[2], lines[2]+"warning: slow disk\n", 1), ErrForeign},
		"with more at the end":  {log + "goodbye\n", ErrCut},
		"too large":             {header + "\n" + strings.Repeat("A", MaxLogBytes), ErrTooLarge},
	} {
		if got, err := Read(strings.NewReader(c.log)); !errors.Is(err, c.want) || got != nil {
			t.Errorf("a log %s: %d bytes, %v; want %v", name, len(got), err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(logOf(f, noise(2*lineBytes+5))))
	f.Add([]byte(header + "\n" + trailer + "\n"))
	f.Fuzz(func(t *testing.T, log []byte) {
		archive, err := Read(bytes.NewReader(log))
		if err != nil {
			return
		}
		if again, err := Read(strings.NewReader(logOf(t, archive))); err != nil || !bytes.Equal(again, archive) {
			t.Errorf("%q is read as %q, and again as %q, %v", log, archive, again, err)
		}
	})
}
