//go:build linux

// Package demo_test runs the demo of the README and interrupts it as a user does.
package demo_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
)

// bin is the folder with the programs, built once for the package.
var bin string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(func(dir string) int {
		bin = dir
		return m.Run()
	}, "./test/demo", "./cmd/registry", "./cmd/supervisor"))
}

// TestInterrupt waits until the demo has shown everything, and sends SIGINT to its process group, as a
// terminal does for Ctrl-C. The demo must end with exit code 0.
func TestInterrupt(t *testing.T) {
	dir := t.TempDir()
	port, err := ports.Reserve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "demo.log")
	p, err := process.Start(context.WithoutCancel(t.Context()), process.Spec{
		Name: "demo", Path: filepath.Join(bin, "demo"), Log: log, Dir: "../../..",
		Args: []string{"--bin", bin, "--dir", filepath.Join(dir, "files"), "--port", strconv.Itoa(port.Number), "--timeout", "5m"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(time.Minute); err != nil {
			t.Error(err)
		}
		if err := port.Release(); err != nil {
			t.Error(err)
		}
	})
	awaitText(t, p, log, "Enter or Ctrl-C stops everything.")
	if err := syscall.Kill(-p.PID(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Done():
	case <-time.After(time.Minute):
		t.Fatal("the demo runs a minute after the interrupt")
	}
	if err := p.Result(); err != nil {
		t.Error(err)
	}
}

// awaitText waits until the log of a process contains a text.
func awaitText(t *testing.T, p *process.Process, log, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	err := pause.Until(ctx, 200*time.Millisecond, func() string {
		if err := p.Unexpected(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(log)
		if err != nil {
			return err.Error()
		}
		if !strings.Contains(string(text), want) {
			return "the demo has not printed: " + want
		}
		return ""
	})
	if err != nil {
		t.Fatal(err)
	}
}
