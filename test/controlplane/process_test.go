package controlplane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"

	"github.com/chandlery/chandlery/test/process"
)

// parentVariable makes this test binary the parent of a process that TestProcessDiesWithItsParent kills.
const parentVariable = "CHANDLERY_TEST_PARENT"

// parent starts a process that would run for long, prints its ID and waits to be killed.
func parent() int {
	dir := os.Getenv(parentVariable)

	p, err := command{path: "/bin/sleep", args: []string{"600"}, dir: dir, log: filepath.Join(dir, "log")}.start(context.Background())
	if err != nil {
		fmt.Println(err)

		return 1
	}

	fmt.Println(p.PID())
	<-p.Done()

	return 0
}

func TestProcessDiesWithItsParent(t *testing.T) {
	g := gomega.NewWithT(t)

	self, err := os.Executable()
	g.Expect(err).NotTo(gomega.HaveOccurred())

	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), parentVariable+"="+t.TempDir())

	out, err := cmd.StdoutPipe()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(cmd.Start()).To(gomega.Succeed())

	line, err := bufio.NewReader(out).ReadString('\n')
	g.Expect(err).NotTo(gomega.HaveOccurred())

	pid, err := strconv.Atoi(strings.TrimSpace(line))
	g.Expect(err).NotTo(gomega.HaveOccurred(), "the parent says %q", line)
	g.Expect(alive(pid)).To(gomega.BeTrue(), "the process has to run before its parent is killed")

	g.Expect(cmd.Process.Kill()).To(gomega.Succeed())

	_ = cmd.Wait()

	g.Eventually(func() bool { return alive(pid) }, 10*time.Second, 10*time.Millisecond).Should(gomega.BeFalse())
}

// alive reports whether a process runs. A zombie does not.
func alive(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}

	_, rest, _ := strings.Cut(string(data), ") ")

	return !strings.HasPrefix(rest, "Z")
}

// shell starts a shell script as a component.
func shell(t *testing.T, script string) *member {
	t.Helper()

	dir := t.TempDir()

	p, err := command{
		component: "script", path: "/bin/sh", args: []string{"-c", script}, dir: dir, log: filepath.Join(dir, "script.log"),
	}.start(t.Context())
	if err != nil {
		t.Fatalf("start a script: %v", err)
	}

	return p
}

func TestProcessStop(t *testing.T) {
	cases := map[string]struct {
		reason string
		script string
		killed bool
	}{
		"Obeys":   {reason: "A process that stops when it is asked to is not killed.", script: "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done"},
		"Refuses": {reason: "A process that does not is killed, and that is told.", script: "trap '' TERM; echo ready; while :; do sleep 0.05; done", killed: true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := shell(t, tc.script)
			gomega.NewWithT(t).Eventually(func() string { return process.Tail(p.Log()) }, 10*time.Second, 10*time.Millisecond).Should(gomega.Equal("ready"))

			err := p.stop(500 * time.Millisecond)

			var failed *ComponentError
			if got := errors.As(err, &failed); got != tc.killed {
				t.Errorf("%s\nstop(...): want killed %t, got %v", tc.reason, tc.killed, err)
			}

			select {
			case <-p.Done():
			default:
				t.Errorf("%s\nthe process still runs", tc.reason)
			}
		})
	}
}

func TestProcessFailedShowsTheLog(t *testing.T) {
	p := shell(t, "echo first; echo 'the reason' >&2; exit 3")
	<-p.Done()

	err := p.ended()

	var failed *ComponentError
	if !errors.As(err, &failed) {
		t.Fatalf("failed(...): want a *ComponentError, got %v", err)
	}

	if diff := cmp.Diff("first\nthe reason", failed.Tail); diff != "" {
		t.Errorf("tail: -want, +got:\n%s", diff)
	}

	if !strings.Contains(err.Error(), "script: ended by itself: exit status 3") {
		t.Errorf("Error(): want the component and its exit, got %q", err.Error())
	}
}

func TestStartOfNoProgram(t *testing.T) {
	dir := t.TempDir()

	_, err := command{component: Etcd, path: filepath.Join(dir, "none"), dir: dir, log: filepath.Join(dir, "log")}.start(t.Context())
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("start(...): want %v, got %v", os.ErrNotExist, err)
	}
}
