package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chandlery/chandlery/test/process"
)

// newProcesses returns a set of processes with a program "shell", and the context that ends on failures.
func newProcesses(t *testing.T) (*processes, context.Context) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink("/bin/sh", filepath.Join(dir, "shell")); err != nil {
		t.Fatal(err)
	}
	ctx, fail := context.WithCancelCause(t.Context())
	ps := &processes{bin: dir, logs: dir, fail: fail}
	t.Cleanup(func() {
		if err := ps.stopAll(); err != nil {
			t.Error(err)
		}
	})
	return ps, ctx
}

func script(name, text string) task { return task{"shell", name, []string{"-c", text}} }

// patient is a script that prints a line when it handles the signal. Before that, the signal would kill it.
const patient = `trap 'exit 0' TERM; echo patient; while :; do sleep 0.01; done`

// hears waits until the process with a name has printed that line.
func hears(t *testing.T, ps *processes, name string) {
	t.Helper()
	log := filepath.Join(ps.logs, name+".log")
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(grace)
	for {
		text, err := os.ReadFile(log)
		if err == nil && strings.Contains(string(text), "patient") {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s says nothing: %q, %v", name, text, err)
		}
	}
}

func TestCrewStopsWithoutComplaint(t *testing.T) {
	t.Parallel()
	ps, ctx := newProcesses(t)
	for _, name := range []string{"a", "b"} {
		if err := ps.start(ctx, script(name, patient)); err != nil {
			t.Fatal(err)
		}
		hears(t, ps, name)
	}
	if ps.named("a") == nil || ps.named("c") != nil {
		t.Error("named does not tell who runs from who does not")
	}
	if err := ps.stop(ps.named("a")); err != nil {
		t.Error(err)
	}
	if ps.named("a") != nil {
		t.Error("a stopped process is still found by its name")
	}
	if err := ps.stopAll(); err != nil {
		t.Error(err)
	}
	if ctx.Err() != nil {
		t.Errorf("stopping processes ended the demo: %v", context.Cause(ctx))
	}
}

func TestCrewFailsWithItsMembers(t *testing.T) {
	t.Parallel()
	ps, ctx := newProcesses(t)
	if err := ps.start(ctx, script("weak", "echo no strength; exit 4")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the death of a process ended nothing")
	}
	var exit *process.ExitError
	if err := context.Cause(ctx); !errors.As(err, &exit) || !strings.Contains(err.Error(), "no strength") {
		t.Errorf("the cause is %v, want an *ExitError with the log", err)
	}
}

func TestCrewFinish(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		text   string
		want   string
	}{
		"Done":   {"status 0 is success", "exit 0", ""},
		"Failed": {"another status is not", "echo broken; exit 1", "broken"},
		"Late":   {"what takes too long is ended", "sleep 60", "waited 200ms in vain"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ps, ctx := newProcesses(t)
			limit := 10 * time.Second
			if name == "Late" {
				limit = 200 * time.Millisecond
			}
			err := ps.finish(ctx, script("once", tc.text), limit)
			if (err == nil) != (tc.want == "") || (err != nil && !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: finish = %v, want %q", tc.reason, err, tc.want)
			}
			if ctx.Err() != nil {
				t.Errorf("%s: it ended the demo: %v", tc.reason, context.Cause(ctx))
			}
		})
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := taken.Close(); err != nil {
			t.Error(err)
		}
	}()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	got, err := address(t.Context(), number)
	if err != nil || got == taken.Addr().String() || !strings.HasPrefix(got, "127.0.0.1:") {
		t.Errorf("address(taken) = %s, %v, want another port of the loopback interface", got, err)
	}
}
