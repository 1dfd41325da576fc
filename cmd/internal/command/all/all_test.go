package all_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/command/all"
)

// TestCommands checks what every command must have.
func TestCommands(t *testing.T) {
	t.Parallel()
	const name = "kubectl chandlery"
	for path, cmd := range runnable(name, all.Commands(name, "CHANDLERY", "test")) {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(strings.ToLower(cmd.Long), "exit codes:") {
				t.Error("its help does not say what its exit codes mean")
			}
			if !strings.Contains(cmd.Example, path) || strings.Contains(cmd.Example, "supervisor "+cmd.Name()) {
				t.Errorf("its examples call it otherwise than it is called:\n%s", cmd.Example)
			}
			if cmd.ValidArgsFunction == nil {
				t.Error("a shell would complete its arguments with the names of files")
			}
			for _, flag := range []string{"kubeconfig", "context", "as", "as-group", "request-timeout", "output"} {
				f := cmd.Flags().Lookup(flag)
				if f == nil {
					t.Errorf("flag --%s is missing", flag)
					continue
				}
				if !strings.Contains(f.Usage, "[$CHANDLERY_") {
					t.Errorf("flag --%s does not say which variable stands in for it: %s", flag, f.Usage)
				}
			}
			for line := range strings.Lines(cmd.Long) {
				if len(line) > 90 {
					t.Errorf("its help has a line of %d characters: %s", len(line), line)
				}
			}
		})
	}
}

// runnable returns the commands without sub-commands, by the words that call them.
func runnable(called string, commands []*cobra.Command) map[string]*cobra.Command {
	found := map[string]*cobra.Command{}
	for _, cmd := range commands {
		path := called + " " + cmd.Name()
		if cmd.HasSubCommands() {
			maps.Copy(found, runnable(path, cmd.Commands()))
			continue
		}
		found[path] = cmd
	}
	return found
}
