package programs_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
)

// TestMainOfSuite builds and runs a program and checks that nothing remains.
func TestMainOfSuite(t *testing.T) {
	var seen string
	code := programs.Main(func(dir string) int {
		seen = dir
		if _, err := os.Stat(filepath.Join(dir, "main")); err != nil {
			t.Error(err)
		}
		return 7
	}, "./test/caller/main")
	if code != 7 {
		t.Errorf("exit code %d, want that of the run", code)
	}
	if _, err := os.Stat(seen); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
}

// TestBuildError checks that the error names the package and the cause.
func TestBuildError(t *testing.T) {
	err := programs.Build(t.Context(), t.TempDir(), "./test/absent")
	if err == nil || !strings.HasPrefix(err.Error(), "building ./test/absent: ") || !strings.Contains(err.Error(), "directory not found") {
		t.Errorf("error %v", err)
	}
}

// TestStartInPod runs a program that reads the namespace of its pod.
func TestStartInPod(t *testing.T) {
	p := programs.StartInPod(t, "reader", "olm", "sh", "-c", `[ "$(cat /var/run/secrets/kubernetes.io/serviceaccount/namespace)" = olm ] && exit 7`)
	<-p.Done()
	var exit *exec.ExitError
	if err := p.Result(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("%v; the end of the log:\n%s", err, process.Tail(p.Log()))
	}
}
