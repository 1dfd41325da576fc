package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/daemon"
)

// TestMain lets this test binary be the daemon process that up starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == daemon.Action {
		main()

		return
	}

	m.Run()
}

// testCluster returns a cluster apart from the user's, with the programs of the user's cache.
func testCluster(t *testing.T) cluster {
	t.Helper()

	_, err := controlplane.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}

	root, err := buildcache.Root()
	if err != nil {
		t.Fatal(err)
	}

	apart := t.TempDir()

	err = os.Symlink(filepath.Join(root, "controlplane"), filepath.Join(apart, "controlplane"))
	if err != nil {
		t.Fatal(err)
	}

	t.Setenv(buildcache.RootVariable, apart)

	c, err := newCluster()
	if err != nil {
		t.Fatal(err)
	}

	return c
}

func up(t *testing.T, c cluster) state {
	t.Helper()

	var out bytes.Buffer

	err := c.up(t.Context(), &out)
	if err != nil {
		t.Fatalf("up: %v", err)
	}

	var s state

	err = c.Ready(&s)
	if err != nil {
		t.Fatalf("after up: %v", err)
	}

	if want := "export KUBECONFIG=" + s.Kubeconfig + "\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("output of up: want %q at its end, got %q", want, out.String())
	}

	return s
}

func down(t *testing.T, c cluster) string {
	t.Helper()

	var out bytes.Buffer

	err := c.Down(t.Context(), &out)
	if err != nil {
		t.Fatalf("down: %v", err)
	}

	return out.String()
}

func TestUpAndDown(t *testing.T) {
	c := testCluster(t)

	err := c.status(&bytes.Buffer{})
	if !errors.Is(err, daemon.ErrNotRunning) {
		t.Errorf("status before up: want %v, got %v", daemon.ErrNotRunning, err)
	}

	first := up(t, c)

	if diff := cmp.Diff(first, up(t, c)); diff != "" {
		t.Errorf("a second up has to find the first: -want, +got:\n%s", diff)
	}

	config, err := clientcmd.BuildConfigFromFlags("", first.Kubeconfig)
	if err != nil {
		t.Fatalf("read the kubeconfig: %v", err)
	}

	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}

	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != len(first.Nodes) {
		t.Errorf("list nodes: want %v, got %d, %v", first.Nodes, len(nodes.Items), err)
	}

	if diff := cmp.Diff("cluster is down\n", down(t, c)); diff != "" {
		t.Errorf("output of down: -want, +got:\n%s", diff)
	}

	if diff := cmp.Diff("no cluster is running\n", down(t, c)); diff != "" {
		t.Errorf("output of a second down: -want, +got:\n%s", diff)
	}

	_, err = os.Stat(c.DataDir())
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("data after down: want %v, got %v", os.ErrNotExist, err)
	}
}

func TestUpAfterTheKeeperWasKilled(t *testing.T) {
	g := gomega.NewWithT(t)
	c := testCluster(t)
	first := up(t, c)

	g.Expect(syscall.Kill(first.PID, syscall.SIGKILL)).To(gomega.Succeed())
	g.Eventually(c.Alive, 10*time.Second, 10*time.Millisecond).Should(gomega.BeFalse())
	g.Expect(c.status(&bytes.Buffer{})).To(gomega.MatchError(daemon.ErrNotRunning))

	second := up(t, c)
	g.Expect(second.PID).NotTo(gomega.Equal(first.PID))

	down(t, c)
}

func TestRunRefusesUnknownCommands(t *testing.T) {
	for _, args := range [][]string{nil, {"sideways"}, {"up", "down"}} {
		err := run(t.Context(), args)
		if err == nil || !strings.HasPrefix(err.Error(), "usage: ") {
			t.Errorf("run(%q): want how to use it, got %v", args, err)
		}
	}
}
