package progress

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/chandlery/chandlery/cmd/internal/terminal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// screen is a buffer that signals when something is drawn.
type screen struct {
	mu    sync.Mutex
	text  bytes.Buffer
	drawn chan struct{}
	once  sync.Once
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Contains(string(p), "Reading") {
		s.once.Do(func() { close(s.drawn) })
	}
	return s.text.Write(p)
}

func TestShow(t *testing.T) {
	s := &screen{drawn: make(chan struct{})}
	done := show(s, "Reading x", 0)
	select {
	case <-s.drawn:
	case <-t.Context().Done():
		t.Fatal("nothing is drawn")
	}
	done()
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.text.String()
	if last := text[strings.LastIndex(strings.TrimRight(text, "\r"), "\r")+1:]; strings.TrimSpace(strings.Trim(last, "\r\x1b[2K")) != "" {
		t.Errorf("something is left on the line: %q of %q", last, text)
	}
}

// TestShort checks that nothing is drawn for short work.
func TestShort(t *testing.T) {
	s := &screen{drawn: make(chan struct{})}
	show(s, "Reading x", delay)()
	if s.text.Len() > 0 {
		t.Errorf("drew %q", s.text.String())
	}
}

func TestNoTerminal(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if terminal.IsTerminal(file) || terminal.IsTerminal(&bytes.Buffer{}) {
		t.Error("a file is no terminal")
	}
	var out bytes.Buffer
	Start(&out, false, "Reading")()
	Start(file, true, "Reading")()
	if info, err := file.Stat(); err != nil || info.Size() > 0 || out.Len() > 0 {
		t.Errorf("something is drawn without a terminal: %q", out.String())
	}
}
