//go:build linux

package suite_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/test/testenv/pseudoterminal"
)

// TestApproveAsks checks that the command approves at a terminal only after the answer yes.
func TestApproveAsks(t *testing.T) {
	for answer, want := range map[string]bool{"\n": false, "no\n": false, "y\n": true, "YES\n": true} {
		t.Run(strings.TrimSpace(answer), func(t *testing.T) {
			w := newWorld(t)
			w.waits()
			person, tty := pseudoterminal.Open(t)
			r := &running{cmd: exec.CommandContext(t.Context(), supervisorPath, "approve", "my-lamp", "-n", w.Namespace, "--kubeconfig", w.kubeconfig)}
			r.cmd.Env = []string{"TERM=xterm", "HOME=" + t.TempDir()}
			r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = tty, tty, tty
			if err := r.cmd.Start(); err != nil {
				t.Fatal(err)
			}
			// The kernel returns an error after the last program has closed the other end. The
			// error ends the copy.
			go func() {
				buffer := make([]byte, 1024)
				for {
					n, err := person.Read(buffer)
					_, _ = r.Write(buffer[:n])
					if err != nil {
						return
					}
				}
			}()
			r.await(t, "Approve it? [y/N] ")
			if w.plan().Spec.Approved {
				t.Fatal("it was approved before anybody said so")
			}
			if _, err := person.WriteString(answer); err != nil {
				t.Fatal(err)
			}
			_ = r.cmd.Wait()
			if got := r.cmd.ProcessState.ExitCode() == 0; got != want || w.plan().Spec.Approved != want {
				t.Errorf("exit code %d: %s", r.cmd.ProcessState.ExitCode(), r.text())
			}
			if !strings.Contains(r.text(), "\x1b[") {
				t.Errorf("there are no colours: %q", r.text())
			}
		})
	}
}
