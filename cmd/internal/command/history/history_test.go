package history_test

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/cmd/internal/command/history"
	"github.com/chandlery/chandlery/cmd/internal/program"
)

// run runs the command without a cluster.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	var out bytes.Buffer
	cmd := program.Program{Name: "supervisor", EnvPrefix: "SUPERVISOR"}.Command(history.New("supervisor", "test"))
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestHistoryErrors(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"Form":       {args: []string{"lamp", "-o", "svg"}, want: `--output is "svg"; it has to be one of human, wide, json, yaml`},
		"NoCluster":  {args: []string{"lamp", "-n", "shop"}, want: "finding the API server: "},
		"Namespace":  {args: []string{"lamp", "--kubeconfig", none}, want: none + " (--kubeconfig) does not exist"},
		"Kubeconfig": {args: []string{"lamp", "-n", "shop", "--kubeconfig", none}, want: "name another with --kubeconfig or $KUBECONFIG"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := run(t, append([]string{"history"}, tt.args...)...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestHistoryCompletion(t *testing.T) {
	for args, want := range map[string]string{"-o ": "human\nwide\njson\nyaml\n:4\n", "-n ": ":4\n", "": ":4\n", "lamp ": ":4\n"} {
		out, err := run(t, append([]string{"__complete", "history"}, strings.Split(args, " ")...)...)
		if err != nil || out != want {
			t.Errorf("%s: %q, %v, want %q", args, out, err, want)
		}
	}
}
