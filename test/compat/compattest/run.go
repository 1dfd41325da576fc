package compattest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// NeedsSimulatedPods skips a case that changes the addresses of pods, unless the tests started the cluster.
func NeedsSimulatedPods(t *testing.T) {
	t.Helper()
	if target.bin == "" {
		t.Skip("the rule needs pods whose addresses the test may change, which those of the cluster of $COMPAT_KUBECONFIG are not")
	}
}

// Kubectl runs kubectl in the cluster and returns its output and exit code. The log of the test
// contains the transcript.
func Kubectl(t *testing.T, args ...string) (output string, code int) {
	t.Helper()
	return Run(t, target.kubectl, "", args...)
}

// Supervisor runs a command of the supervisor and returns its output and exit code. The log of the test
// contains the transcript.
func Supervisor(t *testing.T, args ...string) (output string, code int) {
	t.Helper()
	if target.bin == "" {
		t.Skip("the rule needs a command of the supervisor, which $COMPAT_KUBECONFIG does not provide")
	}
	return Run(t, supervisor(), "", args...)
}

// Request sends a GET request for a path to the API server, and returns why there was no answer.
func Request(ctx context.Context, path string) error {
	transport, err := rest.HTTPClientFor(target.config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(target.config.Host, "/")+path, http.NoBody)
	if err != nil {
		return fmt.Errorf("making a request: %w", err)
	}
	response, err := transport.Do(request)
	if err != nil {
		return err //nolint:wrapcheck // names the request
	}
	if err := response.Body.Close(); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, response.Status)
	}
	return nil
}

// Run runs a program with the kubeconfig of the cluster and an input. It returns the output of the program and its
// exit code. The log of the test contains the transcript.
func Run(t *testing.T, program, input string, args ...string) (output string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+target.kubeconfig)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("running %s: %v", program, err)
	}
	t.Logf("$ %s %s\n%s", program, strings.Join(args, " "), out)
	return string(out), cmd.ProcessState.ExitCode()
}
