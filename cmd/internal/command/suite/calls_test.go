package suite_test

import (
	"bytes"
	"errors"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chandlery/chandlery/cmd/internal/command/all"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/cmd/internal/program"
	"github.com/chandlery/chandlery/cmd/internal/terminal"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/sampling"
)

// answer is the output and exit code of a command.
type answer struct {
	out, log string
	code     int
}

// caller is one of the two programs, with the arguments to call it.
type caller struct {
	name string
	argv []string
	// main has the commands of the program; nil if each call starts a process.
	main *program.Program
}

// callers returns both programs. The plugin runs without kubectl, which takes as much processor time as the plugin.
func callers() []caller {
	return []caller{
		{name: "supervisor", argv: []string{supervisorPath}, main: &program.Program{Name: "supervisor", EnvPrefix: "SUPERVISOR"}},
		{
			name: "kubectl chandlery", argv: []string{pluginPath},
			main: &program.Program{Name: "kubectl-chandlery", Called: "kubectl chandlery", EnvPrefix: "CHANDLERY"},
		},
	}
}

// kubectl returns the plugin as users run it: kubectl looks for it in the PATH.
func kubectl(t *testing.T) caller {
	t.Helper()
	return caller{name: "kubectl chandlery", argv: []string{controlplane.Get(t).Kubectl(), "chandlery"}}
}

// call calls a program as a user: one call in $CALLS as a process, and others in the process of the test, which takes less
// processor time. The names of the test, the program and the command select the processes.
func (c caller) call(t *testing.T, kubeconfig string, args ...string) answer {
	t.Helper()
	share := sampling.Number(t, "CALLS", 1, 1)
	selected := fnv.New32a()
	for _, name := range []string{t.Name(), c.name, args[0]} {
		_, _ = selected.Write([]byte(name + "\n")) // it returns no errors
	}
	if c.main != nil && uint64(selected.Sum32())%uint64(share) != 0 {
		return c.callInProcess(t, kubeconfig, args)
	}
	return c.start(t, kubeconfig, args)
}

// start calls a program as a process.
func (c caller) start(t *testing.T, kubeconfig string, args []string) answer {
	t.Helper()
	argv := slices.Concat(c.argv, args)
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+filepath.Dir(pluginPath)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("running %v: %v", argv, err)
	}
	return answer{out: out.String(), log: log.String(), code: cmd.ProcessState.ExitCode()}
}

// callInProcess does what the main function of the program does, in the process of the test.
func (c caller) callInProcess(t *testing.T, kubeconfig string, args []string) answer {
	t.Helper()
	t.Setenv("KUBECONFIG", kubeconfig)
	t.Chdir(t.TempDir())
	var out, log bytes.Buffer
	cmd := c.main.Command(all.Commands(c.name, c.main.EnvPrefix, "test")...)
	cmd.SetArgs(args)
	cmd.SetIn(&bytes.Buffer{})
	cmd.SetOut(&out)
	cmd.SetErr(&log)
	code := console.Report(terminal.NewWriter(&log), c.name, cmd.ExecuteContext(t.Context()))
	return answer{out: out.String(), log: log.String(), code: int(code)}
}
