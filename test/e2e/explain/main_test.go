package explain_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/testenv"
)

const (
	// patience bounds the time until a situation has developed, with all the others in parallel.
	patience = testenv.Patience
	polling  = 500 * time.Millisecond
	// leaseNamespace holds the Lease of the supervisor.
	leaseNamespace = "default"
)

// bin is the folder with the program, built once for the package.
var bin string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(func(dir string) int {
		bin = dir
		// The loss of a node is detected sooner than by default, to shorten the test.
		return testenv.Main(m, controlplane.Options{NodeMonitorGracePeriod: 10 * time.Second}, testenv.InstallCRDsWith(program()))
	}, "./cmd/supervisor"))
}

func program() string { return filepath.Join(bin, "supervisor") }

// startSupervisor runs a supervisor until it is stopped or the test ends.
func startSupervisor(t *testing.T, more ...string) *process.Process {
	t.Helper()
	return programs.Start(t, "supervisor", program(), append([]string{
		"run", "--kubeconfig", controlplane.Get(t).Kubeconfig(), "--identity", "supervisor-1", "--leader-election-namespace", leaseNamespace,
		"--catalog-refresh-interval", "1s", "--install-plan-retry-timeout", "1s", "--image-plain-http",
		"--bundle-cache-dir", t.TempDir(), "--metrics-address", "0", "--health-address", "0",
	}, more...)...)
}

// explain runs the command as a user would and returns its output, without the line that names the cluster.
func explain(t *testing.T, kubeconfig string, args ...string) (output string, code int) {
	t.Helper()
	var out, messages bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program(), append([]string{"explain", "--kubeconfig", kubeconfig}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &messages
	err := cmd.Run()
	// The first line of standard error names the cluster.
	_, rest, _ := strings.Cut(messages.String(), "\n")
	out.WriteString(rest)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out.String(), 0
	case errors.As(err, &exit):
		return out.String(), exit.ExitCode()
	default:
		t.Fatalf("running explain: %v", err)
		return "", 0
	}
}

// eventually runs explain until the first line has all words and the exit code matches. It returns the output.
func eventually(t *testing.T, kubeconfig string, args, words []string, code int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	output := ""
	err := pause.Until(ctx, polling, func() string {
		var got int
		output, got = explain(t, kubeconfig, args...)
		first, _, _ := strings.Cut(output, "\n")
		for _, word := range words {
			if !strings.Contains(first, word) {
				return fmt.Sprintf("the first line lacks %q", word)
			}
		}
		if got != code {
			return fmt.Sprintf("the exit code is %d, want %d", got, code)
		}
		return ""
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return output
}
