package process

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shell starts a script and ends it with the test.
func shell(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start(t.Context(), Spec{Name: "script", Path: "/bin/sh", Args: []string{"-c", script}, Log: filepath.Join(t.TempDir(), "log")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// printed waits until the process has written text to its log.
func printed(t *testing.T, p *Process, text string) {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !strings.Contains(Tail(p.Log()), text) {
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Fatalf("%q does not appear in the log: %s", text, Tail(p.Log()))
		}
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		script string
		want   string
	}{
		"Obeys":    {"a process that ends with status 0 stopped well", `trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done`, ""},
		"Fails":    {"a failing stop shows the log", `trap 'echo broken; exit 3' TERM; echo up; while :; do sleep 0.01; done`, "broken"},
		"Stubborn": {"a process that ignores the signal is killed", `trap '' TERM; echo up; while :; do sleep 0.01; done`, "was killed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := shell(t, tc.script)
			printed(t, p, "up")
			err := p.Stop(500 * time.Millisecond)
			if (err == nil) != (tc.want == "") || (err != nil && !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: Stop = %v, want %q", tc.reason, err, tc.want)
			}
			select {
			case <-p.Done():
			default:
				t.Errorf("%s: the process still runs", tc.reason)
			}
			if err := p.Stop(time.Second); err != nil {
				t.Errorf("%s: a second Stop = %v, want nil", tc.reason, err)
			}
		})
	}
}

func TestUnexpected(t *testing.T) {
	t.Parallel()
	p := shell(t, `echo something is wrong; exit 7`)
	<-p.Done()
	var exit *ExitError
	if err := p.Unexpected(); !errors.As(err, &exit) {
		t.Fatalf("Unexpected = %v, want an *ExitError", err)
	}
	if exit.Name != "script" || !strings.Contains(exit.Error(), "something is wrong") || !strings.Contains(exit.Error(), "exit status 7") {
		t.Errorf("the error does not say what happened: %v", exit)
	}
	running := shell(t, `sleep 60`)
	if err := running.Unexpected(); err != nil {
		t.Errorf("Unexpected = %v for a running process, want nil", err)
	}
}

func TestStartNamesWhatFailed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := Start(t.Context(), Spec{Name: "ghost", Path: filepath.Join(dir, "none"), Log: filepath.Join(dir, "log")})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "ghost") {
		t.Errorf("Start = %v, want that ghost does not exist", err)
	}
	_, err = Start(t.Context(), Spec{Name: "mute", Path: "/bin/true", Log: filepath.Join(dir, "none", "log")})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "log of mute") {
		t.Errorf("Start = %v, want that the log cannot be opened", err)
	}
}

func TestLast(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, []byte("first\nsecond\nthird\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int64]string{100: "first\nsecond\nthird\n", 9: "third\n", 13: "third\n", 14: "second\nthird\n"} {
		got, err := last(file, n)
		if err != nil || string(got) != want {
			t.Errorf("last(%d) = %q, %v, want %q", n, got, err, want)
		}
	}
	if got := Tail(file + "x"); !strings.HasPrefix(got, "(no log") {
		t.Errorf("tail of a missing file = %q", got)
	}
}
