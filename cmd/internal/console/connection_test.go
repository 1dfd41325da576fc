package console_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/chandlery/chandlery/cmd/internal/console"
)

// kubeconfig has a context, at, and a context, gone, whose cluster is missing.
const kubeconfig = `apiVersion: v1
kind: Config
clusters:
- name: here
  cluster: {server: "https://127.0.0.1:1"}
contexts:
- name: at
  context: {cluster: here, namespace: shop}
- name: gone
  context: {cluster: nowhere}
`

// kubeconfigTest is a case of TestKubeconfig.
type kubeconfigTest struct {
	reason string
	// variable is $KUBECONFIG.
	variable string
	args     []string
	want     []string
}

// kubeconfigTests returns the cases of TestKubeconfig, with their files in a folder.
func kubeconfigTests(t *testing.T, dir string) []kubeconfigTest {
	t.Helper()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	nowhere, whole, broken := filepath.Join(dir, "none"), write("whole", kubeconfig), write("broken", "apiVersion: v1\nclusters: [\n")
	return []kubeconfigTest{
		{
			reason: "the variable names a file that is not there", variable: nowhere,
			want: []string{nowhere + " ($KUBECONFIG) does not exist", "name another with --kubeconfig or $KUBECONFIG"},
		},
		{
			reason: "the flag does, and wins", variable: whole, args: []string{"--kubeconfig", nowhere},
			want: []string{nowhere + " (--kubeconfig) does not exist"},
		},
		{
			reason: "none of several is there", variable: nowhere + string(filepath.ListSeparator) + nowhere + "2",
			want: []string{nowhere + " and " + nowhere + "2 ($KUBECONFIG) does not exist"},
		},
		{reason: "a folder", variable: dir, want: []string{dir + " ($KUBECONFIG) cannot be read: is a directory", "make it readable"}},
		{
			reason: "what is no YAML", variable: broken,
			want: []string{broken + " ($KUBECONFIG) is no kubeconfig", "yaml: line", "correct it, or name another"},
		},
		{
			reason: "a broken one beside a whole one", variable: whole + string(filepath.ListSeparator) + broken, args: []string{"--context", "at"},
			want: []string{broken + " ($KUBECONFIG) is no kubeconfig"},
		},
		{reason: "an empty one", variable: write("empty", ""), want: []string{"empty ($KUBECONFIG) is empty"}},
		{
			reason: "a context that is not there", variable: whole, args: []string{"--context", "else"},
			want: []string{whole + ` ($KUBECONFIG) has no context "else", which --context names; it has at, gone`},
		},
		{
			reason: "a current context that is not there", variable: write("old", kubeconfig+"current-context: old\n"),
			want: []string{`has no context "old", which its current-context names; it has at, gone`},
		},
		{reason: "no current context", variable: whole, want: []string{whole + " ($KUBECONFIG) has no current-context; choose one with --context; it has at, gone"}},
		{
			reason: "a context whose cluster is missing", variable: whole, args: []string{"--context", "gone"},
			want: []string{`context "gone" of ` + whole + " ($KUBECONFIG) cannot be used", "correct it, or choose another with --context"},
		},
		{reason: "no file at all", want: []string{"there is no " + filepath.Join(dir, "default"), "this is no pod", "name a kubeconfig with --kubeconfig or $KUBECONFIG"}},
	}
}

// TestKubeconfig checks the error for a kubeconfig that cannot be used. It names the file, the
// setting that named the file, the problem and the remedy, whether the command reads the namespace
// first or the server.
func TestKubeconfig(t *testing.T) {
	dir := t.TempDir()
	home := clientcmd.RecommendedHomeFile
	t.Cleanup(func() { clientcmd.RecommendedHomeFile = home })
	clientcmd.RecommendedHomeFile = filepath.Join(dir, "default")
	for _, tt := range kubeconfigTests(t, dir) {
		t.Run(strings.ReplaceAll(tt.reason, " ", "_"), func(t *testing.T) {
			t.Setenv("KUBECONFIG", tt.variable)
			t.Setenv("KUBERNETES_SERVICE_HOST", "") // even in a pod, the test must not use a service account
			var c console.Connection
			cmd := &cobra.Command{}
			c.AddFlags(cmd)
			if err := cmd.ParseFlags(tt.args); err != nil {
				t.Fatal(err)
			}
			_, err := c.RESTConfig()
			if err == nil {
				t.Fatal("there is no error")
			}
			if code := console.CodeOf(err); code != console.Failed {
				t.Errorf("exit code %d, want %d", code, console.Failed)
			}
			for _, words := range tt.want {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("the error lacks %q:\n%v", words, err)
				}
			}
			// Most commands read the namespace first, which needs less of the file.
			if _, first := c.Namespace(); first != nil && first.Error() != err.Error() {
				t.Errorf("asked for the namespace, it says something else:\n%v", first)
			}
		})
	}
}

// TestClusterHeader checks which cluster a command names, as text and as JSON. Of several files, it is the one with the
// context.
func TestClusterHeader(t *testing.T) {
	dir := t.TempDir()
	whole, current := filepath.Join(dir, "whole"), filepath.Join(dir, "current")
	for file, text := range map[string]string{whole: kubeconfig, current: "apiVersion: v1\nkind: Config\ncurrent-context: at\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for reason, tt := range map[string]struct {
		variable string
		args     []string
	}{
		"the flags name file and context": {args: []string{"--kubeconfig", whole, "--context", "at"}},
		"another file names the context":  {variable: current + string(filepath.ListSeparator) + whole},
	} {
		t.Setenv("KUBECONFIG", tt.variable)
		var c console.Connection
		cmd := &cobra.Command{}
		c.AddFlags(cmd)
		if err := cmd.ParseFlags(tt.args); err != nil {
			t.Fatal(err)
		}
		got, err := c.Cluster()
		if err != nil {
			t.Fatal(err)
		}
		if want := "Cluster: https://127.0.0.1:1 (context at of " + whole + ")\n"; got.Header() != want {
			t.Errorf("%s: the header is %q, want %q", reason, got.Header(), want)
		}
		text, err := json.Marshal(got)
		if want := `{"server":"https://127.0.0.1:1","context":"at","kubeconfig":"` + whole + `"}`; err != nil || string(text) != want {
			t.Errorf("%s: JSON %s, error %v, want %s", reason, text, err, want)
		}
	}
	if got, want := (console.Cluster{Server: "https://10.0.0.1"}).Header(), "Cluster: https://10.0.0.1 (service account of the pod)\n"; got != want {
		t.Errorf("in a pod, the header is %q, want %q", got, want)
	}
}
