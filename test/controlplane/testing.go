package controlplane

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Timeout bounds the wait of a suite for one condition. It fits a machine whose processors are busy
// with other suites, where a failover and three versions took a minute.
const Timeout = 3 * time.Minute

// cleanupLimit bounds the deletion of a test's namespace.
const cleanupLimit = 30 * time.Second

// current is the control plane that Main has started. A test package has one.
var current *ControlPlane

// Main starts a control plane, prepares it, runs the tests of the package, stops the control plane
// and returns the exit code for TestMain. If tests fail, it keeps the logs and prints their path.
func Main(m *testing.M, o Options, prepare ...func(context.Context, *ControlPlane) error) int {
	ctx := context.Background() //nolint:forbidigo // A test binary has no caller to take a context from.

	c, err := Start(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}

	code := run(ctx, m, c, prepare)
	if code != 0 {
		keepLogs(c)
	}

	err = c.Stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		return max(code, 1)
	}

	return code
}

func run(ctx context.Context, m *testing.M, c *ControlPlane, prepare []func(context.Context, *ControlPlane) error) int {
	for _, p := range prepare {
		err := p(ctx, c)
		if err != nil {
			fmt.Fprintln(os.Stderr, "prepare the control plane:", err)

			return 1
		}
	}

	current = c

	return m.Run()
}

func keepLogs(c *ControlPlane) {
	dir, err := os.MkdirTemp("", "chandlery-logs-")
	if err == nil {
		err = c.SaveLogs(dir)
	}

	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		return
	}

	fmt.Fprintln(os.Stderr, "logs of the control plane:", dir)
}

// StartForTest starts a control plane that ends with the test. If the test fails, it keeps the logs and prints their path.
func StartForTest(tb testing.TB, o Options) *ControlPlane {
	tb.Helper()

	// The control plane is needed until the last cleanup, and the context of the test ends before.
	c, err := Start(context.WithoutCancel(tb.Context()), o)
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() {
		if tb.Failed() {
			keepLogs(c)
		}

		err := c.Stop()
		if err != nil {
			tb.Error(err)
		}
	})

	return c
}

// Get returns the control plane that Main has started.
func Get(tb testing.TB) *ControlPlane {
	tb.Helper()

	if current == nil {
		tb.Fatal("no control plane: TestMain has to call controlplane.Main")
	}

	return current
}

// Namespace creates a namespace for one test, named after it, and returns its name. The namespace
// is discarded when the test ends: see DiscardNamespace.
func Namespace(tb testing.TB) string {
	tb.Helper()

	return Get(tb).Namespace(tb)
}

// Namespace is the function Namespace for this control plane.
func (c *ControlPlane) Namespace(tb testing.TB) string {
	tb.Helper()

	namespaces := c.client.CoreV1().Namespaces()

	namespace, err := namespaces.Create(tb.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: namespacePrefix(tb.Name())},
	}, metav1.CreateOptions{})
	if err != nil {
		tb.Fatalf("create a namespace: %v", err)
	}

	tb.Cleanup(func() {
		// The context of the test has ended by now.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), cleanupLimit)
		defer cancel()

		err := c.DiscardNamespace(ctx, namespace.Name)
		if err != nil {
			tb.Error(err)
		}
	})

	// A pod without its service account is refused.
	ctx, cancel := context.WithTimeout(tb.Context(), cleanupLimit)
	defer cancel()

	err = c.wait(ctx, "the service account of namespace "+namespace.Name, func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts(namespace.Name).Get(ctx, "default", metav1.GetOptions{})

		return err
	})
	if err != nil {
		tb.Fatal(err)
	}

	return namespace.Name
}

// namespacePrefix converts the name of a test to the start of a namespace name: lower case letters,
// digits and hyphens, short enough for the server's suffix.
func namespacePrefix(test string) string {
	const longest = 40

	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		default:
			return '-'
		}
	}, test)

	return "t-" + strings.Trim(name[:min(len(name), longest)], "-") + "-"
}
