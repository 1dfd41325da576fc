// Package compattest starts what the compatibility tests run against: a cluster with the supervisor
// or with OLM. Its Cluster is the client of one case.
package compattest

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/oracle/olmpeer"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
)

const (
	// Patience bounds the waits of a case whose rule has no limit of its own.
	Patience = controlplane.Timeout
	polling  = 200 * time.Millisecond
	// impatience bounds the waits of a case that is expected to fail.
	impatience = time.Minute
	// GlobalNamespace is the namespace of the global catalogs.
	GlobalNamespace = "olm"
	// ProtectedNamespace is a namespace that gets copies of versions although copies are disabled. No case but the one
	// about it uses it.
	ProtectedNamespace = "compat-protected"
	// namespacePrefix begins the names of the cases' namespaces.
	namespacePrefix = "compat-"
	// leaseNamespace is the namespace of the supervisor's Lease.
	leaseNamespace = metav1.NamespaceDefault
	// shortRetryTimeout is the flag --install-plan-retry-timeout of the supervisor, shorter than the default.
	shortRetryTimeout = 10 * time.Second
	// longRetryTimeout is the same with full rest periods.
	longRetryTimeout = 10 * time.Minute
	// shortRest is the rest period of a case without full rest periods.
	shortRest = 20 * time.Second
)

// RetryWindow returns how long a step may fail before its plan fails.
func RetryWindow() time.Duration {
	switch {
	case target.olm || target.bin == "":
		return time.Minute
	case target.fullRest:
		return longRetryTimeout
	default:
		return shortRetryTimeout
	}
}

// Limit returns the limit of a rule, or a longer one for OLM, which is slower.
func Limit(limit, ofOLM time.Duration) time.Duration {
	if target.olm {
		return ofOLM
	}
	return limit
}

// Stretched returns the longest time that a case accepts where its rule has a limit. $COMPAT_LIMIT_FACTOR is how many
// times as long as the limit it is, on a machine that is busy with other tests; without it, it is the limit.
func Stretched(limit time.Duration) time.Duration {
	if limit >= Patience {
		return limit
	}
	return min(time.Duration(max(target.factor, 1))*limit, Patience)
}

// RepeatsEvents reports whether there may be further Events about a step. OLM applies some steps twice.
func RepeatsEvents() bool { return target.olm }

// KeepsOrphans reports whether an APIService whose version does not exist stays for ten seconds. OLM deletes it at once.
func KeepsOrphans() bool { return !target.olm }

// target is the cluster and the program that the cases test.
var target struct {
	config *rest.Config
	// olm is set if OLM is tested.
	olm bool
	// fullRest is set if only the rules with a rest period are checked, with full rest periods.
	fullRest bool
	// factor is $COMPAT_LIMIT_FACTOR, and share is $COMPAT_SHARE; 0 counts as 1.
	factor, share uint8
	// plane is the control plane of the tests; nil for an existing cluster.
	plane *controlplane.ControlPlane
	// bin is the folder with the program supervisor. It is empty if the tests did not start the cluster.
	bin string
	// kubeconfig and kubectl are files.
	kubeconfig, kubectl string
	// started is the supervisor or OLM that the tests started.
	started interface {
		Stop(grace time.Duration) error
		Kill() error
	}
	// metrics is the port that serves the metrics of the supervisor. It is nil if the tests did not start it.
	metrics *ports.Port
	// registry is the image on which catalog images are based, if there are real nodes: Chandlery's registry, or opm
	// if OLM is tested.
	registry v1.Image
	// olmPods are the images of OLM's pods, if OLM is tested on real nodes.
	olmPods *olmpeer.Pods
	// flags are those of a supervisor that the tests did not start.
	flags []string
	// missing is why no case can run; empty if cases run.
	missing string
	// restart starts the supervisor or OLM again.
	restart func(context.Context) error
}

// Main starts the program that the cases test, runs the tests of a package, and returns the exit
// code for TestMain. $COMPAT_MANAGER is olm to test OLM. $COMPAT_KUBECONFIG names a cluster in which
// the program already runs, and $COMPAT_FLAGS has the flags of the supervisor there. $COMPAT_REST is full to check only
// the rules with a rest period, with full rest periods. $COMPAT_SHARE checks one in so many rules, a fixed sample.
func Main(m *testing.M) int {
	if err := prepareTests(16); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if path := os.Getenv("COMPAT_KUBECONFIG"); path != "" {
		return runExternal(m, path, false)
	}
	return programs.Main(func(dir string) int {
		target.bin = dir
		return controlplane.Main(m, controlplane.Options{Nodes: 1}, start)
	}, "./cmd/supervisor")
}

// prepareTests sets how many cases run at once, and reads the environment. Cases wait most of the time, so it is more than
// the number of processors. The flag on the command line has precedence.
func prepareTests(parallel int) error {
	if err := flag.Set("test.parallel", strconv.Itoa(parallel)); err != nil {
		return fmt.Errorf("setting the number of parallel cases: %w", err)
	}
	logf.SetLogger(logr.FromSlogHandler(slog.DiscardHandler))
	target.olm = os.Getenv("COMPAT_MANAGER") == "olm"
	target.fullRest = os.Getenv("COMPAT_REST") == "full"
	for name, number := range map[string]*uint8{"COMPAT_LIMIT_FACTOR": &target.factor, "COMPAT_SHARE": &target.share} {
		text := os.Getenv(name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseUint(text, 10, 8)
		if err != nil {
			return fmt.Errorf("reading $%s: %w", name, err)
		}
		*number = uint8(n)
	}
	return nil
}

// start prepares the control plane and starts the program that the cases test.
func start(ctx context.Context, cp *controlplane.ControlPlane) error {
	target.plane, target.config, target.kubeconfig, target.kubectl = cp, cp.Config(), cp.Kubeconfig(), cp.Kubectl()
	if err := programs.InstallCRDs(ctx, supervisor(), cp.Kubeconfig()); err != nil {
		return err //nolint:wrapcheck // says what failed
	}
	if target.olm {
		return startOLM(ctx, cp)
	}
	return startSupervisor(ctx, RetryWindow())
}

func supervisor() string { return filepath.Join(target.bin, "supervisor") }

// startSupervisor starts a supervisor, and again by target.restart.
func startSupervisor(ctx context.Context, retryTimeout time.Duration) error {
	target.restart = func(ctx context.Context) error {
		started, err := runSupervisor(ctx, "supervisor", retryTimeout)
		target.started = started
		return err
	}
	return target.restart(ctx)
}

// runSupervisor starts a supervisor with an identity, and waits until it serves metrics: before that, a signal that stops it
// may end it like a failure.
func runSupervisor(ctx context.Context, identity string, retryTimeout time.Duration) (*process.Process, error) {
	cp := target.plane
	metrics, err := ports.Reserve(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // says what failed
	}
	args := []string{
		"run", "--kubeconfig", cp.Kubeconfig(), "--identity", identity, "--leader-election-namespace", leaseNamespace,
		"--global-catalog-namespace", GlobalNamespace, "--install-plan-retry-timeout", retryTimeout.String(),
		"--protected-copied-csv-namespaces", ProtectedNamespace,
		"--catalog-refresh-interval", "1s", "--image-plain-http", "--bundle-cache-dir", filepath.Join(target.bin, "bundles-"+identity),
		"--metrics-address", metrics.Address(), "--health-address", "0",
		"--bundle-kind", "shop.example/Widget", "--bundle-kind", "shop.example/Lantern", "--bundle-kind", "shop.example/Signboard:cluster",
	}
	if target.registry == nil {
		// Cases without real nodes kill no leader. A slow machine must not lose the Lease. Such nodes cannot pull either.
		args = append(args, "--lease-duration", "60s", "--renew-deadline", "50s", "--retry-period", "500ms", "--image-pull", "supervisor")
	}
	started, err := process.Start(context.WithoutCancel(ctx), process.Spec{
		Name: identity, Path: supervisor(), Log: filepath.Join(cp.LogDir(), identity+".log"), Args: args,
	})
	if err != nil {
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	target.metrics = metrics
	err = wait.PollUntilContextTimeout(ctx, polling, Patience, true, func(ctx context.Context) (bool, error) {
		return accepts(ctx, metrics.Address()), nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for the metrics of the supervisor: %w; the end of its log:\n%s", err, process.Tail(started.Log()))
	}
	return started, nil
}

// accepts reports whether an address accepts connections.
func accepts(ctx context.Context, address string) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	return err == nil && conn.Close() == nil
}

func startOLM(ctx context.Context, cp *controlplane.ControlPlane) error {
	dir, err := olmpeer.Build(ctx, os.Stderr)
	if err != nil {
		return err //nolint:wrapcheck // says what failed
	}
	logs, err := os.MkdirTemp("", "compat-olm-")
	if err != nil {
		return fmt.Errorf("making a folder for the logs of OLM: %w", err)
	}
	peer, err := olmpeer.Start(context.WithoutCancel(ctx), olmpeer.Options{
		Programs: dir, Logs: logs, Plane: cp, Protected: ProtectedNamespace, Pods: target.olmPods,
	})
	if err != nil {
		return err //nolint:wrapcheck // says what failed
	}
	target.started = olm{peer}
	target.restart = func(ctx context.Context) error { return peer.Restart(context.WithoutCancel(ctx)) }
	return nil
}

// startWith starts the supervisor or OLM again with a retry timeout for InstallPlans.
func startWith(ctx context.Context, retryTimeout time.Duration) error {
	if peer, is := target.started.(olm); is {
		return peer.Restart(context.WithoutCancel(ctx), "--install-plan-retry-timeout", retryTimeout.String())
	}
	return startSupervisor(ctx, retryTimeout)
}

// olm is a running OLM.
type olm struct{ *olmpeer.Peer }

// Stop ends both programs.
func (o olm) Stop(time.Duration) error { return o.Peer.Stop() }

// Kill ends both programs.
func (o olm) Kill() error { return o.Peer.Stop() }
