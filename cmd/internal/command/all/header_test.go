package all_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/command/all"
	"github.com/chandlery/chandlery/cmd/internal/console"
)

// TestCommandsNameTheCluster runs the commands that report what they find, on an API server that serves nothing.
// Without -o, the first line of standard error names the cluster. With -o json, only the document does.
func TestCommandsNameTheCluster(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := `{"apiVersion": "v1", "kind": "Config", "current-context": "kitchen",
		"contexts": [{"name": "kitchen", "context": {"cluster": "a"}}], "clusters": [{"name": "a", "cluster": {"server": "` + server.URL + `"}}]}`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	header := "Cluster: " + server.URL + " (context kitchen of " + file + ")\n"
	for name, args := range map[string][]string{"status": {"status"}, "explain": {"explain", "--all-namespaces"}, "discover": {"discover"}} {
		t.Run(name, func(t *testing.T) {
			args = append(args, "--kubeconfig", file)
			_, text := runCommand(t, args...)
			if !strings.HasPrefix(text, header) {
				t.Errorf("standard error does not start with %q:\n%s", header, text)
			}
			out, text := runCommand(t, append(args, "-o", "json")...)
			var document struct {
				Cluster console.Cluster `json:"cluster"`
			}
			if err := json.Unmarshal([]byte(out), &document); err != nil {
				t.Fatalf("%v\n%s\n%s", err, out, text)
			}
			if want := (console.Cluster{Server: server.URL, Context: "kitchen", Kubeconfig: file}); document.Cluster != want {
				t.Errorf("the document has %+v, want %+v", document.Cluster, want)
			}
			if strings.Contains(text, "Cluster:") {
				t.Errorf("standard error has the header:\n%s", text)
			}
		})
	}
}

// runCommand runs a command and returns its standard output and standard error. The result of the command is not
// checked: an API server without the kinds is a problem.
func runCommand(t *testing.T, args ...string) (out, text string) {
	t.Helper()
	root := &cobra.Command{Use: "chandlery", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(all.Commands("chandlery", "CHANDLERY", "test")...)
	var stdout, stderr bytes.Buffer
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	root.SetArgs(args)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Logf("%v: %v", args, err)
	}
	return stdout.String(), stderr.String()
}
