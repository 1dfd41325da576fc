package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestHelp checks that the help names the plugin as users call it, and that the plugin has no
// command that runs controllers.
func TestHelp(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want string
		not  string
	}{
		"Root":       {args: nil, want: "kubectl chandlery [command]", not: "Run the controllers"},
		"Command":    {args: []string{"status", "--help"}, want: "kubectl chandlery status [-n NAMESPACE | -A] [flags]", not: "supervisor status"},
		"Version":    {args: []string{"version"}, want: "kubectl-chandlery devel (commit "},
		"Completion": {args: []string{"completion", "bash"}, want: "bash completion"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			cmd := newCommand()
			cmd.SetOut(&out)
			cmd.SetArgs(append([]string{}, tt.args...))
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), tt.want) || tt.not != "" && strings.Contains(out.String(), tt.not) {
				t.Errorf("%q is not there, or %q is:\n%s", tt.want, tt.not, out.String())
			}
		})
	}
}
