package scale

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

const catalogNamespace, catalogName = "olm", "scale"

// firstVersion is replaced by nextVersion.
const firstVersion, nextVersion = "1.0.0", "1.1.0"

// grace bounds the end of a process.
const grace = 10 * time.Second

// Options configure a cluster.
type Options struct {
	// Root is the folder of the repository. Dir is a folder with the programs registry and
	// supervisor, for their logs.
	Root, Dir string
	// Args are additional arguments of the supervisor.
	Args []string
	// WithoutControllers are controllers that kube-controller-manager does not run. They have no effect on real nodes.
	WithoutControllers []string
	// RealNodes runs pods on real nodes, which requires root.
	RealNodes bool
}

// Cluster is a control plane with a catalog and one supervisor with its permissions in a cluster.
type Cluster struct {
	plane    *plane
	options  Options
	registry *registry
	metrics  string
}

// newCluster returns the cluster of a control plane, with a registry that does not run yet.
func newCluster(o Options, p *plane) *Cluster {
	return &Cluster{options: o, plane: p, registry: &registry{options: o}}
}

// Start starts all processes.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	p, err := startPlane(ctx, o, "chandlery-supervisor")
	if err != nil {
		return nil, err
	}
	c := newCluster(o, p)
	for _, step := range []func(context.Context) error{c.connect, c.grant, c.serve, c.supervise} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, c.Stop()) //nolint:contextcheck // What was started is removed after ctx too.
		}
	}
	return c, nil
}

// Stop stops all processes.
func (c *Cluster) Stop() error {
	var failures []error
	for _, p := range []*process.Process{c.plane.measured, c.registry.process} {
		if p != nil {
			failures = append(failures, p.Stop(grace))
		}
	}
	return errors.Join(append(failures, c.plane.stop())...)
}

func (c *Cluster) connect(ctx context.Context) error {
	if err := programs.InstallCRDs(ctx, filepath.Join(c.options.Dir, "supervisor"), c.plane.Kubeconfig()); err != nil {
		return err
	}
	return c.plane.connect()
}

func (c *Cluster) grant(ctx context.Context) error {
	for _, name := range []string{catalogNamespace, home} {
		if err := c.plane.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	for _, file := range []string{"deploy/rbac/supervisor.yaml", "deploy/rbac/leases.yaml"} {
		command := exec.CommandContext(ctx, c.plane.Kubectl(), "--kubeconfig", c.plane.Kubeconfig(), "apply", "-f", filepath.Join(c.options.Root, file))
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl apply -f %s: %w: %s", file, err, output)
		}
	}
	return nil
}

// serve starts the registry and makes its catalog known.
func (c *Cluster) serve(ctx context.Context) error {
	address, err := c.registry.serve(ctx)
	if err != nil {
		return err
	}
	return c.plane.create(ctx, fixtures.ServedCatalog(catalogNamespace, catalogName, address))
}

// supervise starts the supervisor and waits until it has read the catalog.
func (c *Cluster) supervise(ctx context.Context) error {
	kubeconfig, err := c.plane.kubeconfig()
	if err != nil {
		return err
	}
	metrics, err := ports.Reserve(ctx)
	if err != nil {
		return err
	}
	c.metrics = metrics.Address()
	args := append([]string{
		"run", "--kubeconfig", kubeconfig, "--leader-election-namespace", home, "--metrics-address", c.metrics, "--health-address", "0",
		// A machine that is busy for seconds must not end a measurement.
		"--lease-duration", "60s", "--renew-deadline", "50s",
	}, c.options.Args...)
	if c.plane.measured, err = c.options.start(ctx, "supervisor", args...); err != nil {
		return err
	}
	return c.plane.await(ctx, "the catalog to be READY", func(ctx context.Context) (bool, error) {
		source := &operatorsv1alpha1.CatalogSource{}
		err := c.plane.client.Get(ctx, client.ObjectKey{Namespace: catalogNamespace, Name: catalogName}, source)
		state := source.Status.GRPCConnectionState
		return state != nil && state.LastObservedState == "READY", err
	})
}

// Prepare creates namespaces with their OperatorGroups and waits until the supervisor is idle.
func (c *Cluster) Prepare(ctx context.Context, names []string) error {
	return c.plane.namespaces(ctx, names, func(ctx context.Context, name string) error {
		return c.plane.create(ctx, &operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "own"},
			Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{name}},
		})
	})
}

// Install subscribes to the operator in prepared namespaces, all at once, and counts the cost.
// before is the number of namespaces that already have the operator.
func (c *Cluster) Install(ctx context.Context, before int, names []string) (*Batch, error) {
	return c.counted(ctx, before, names, func(ctx context.Context, names []string) error { return c.subscribe(ctx, names, channelStable) })
}

// InstallFirst is like Install for Subscriptions to a channel that gets no other version. Update does not update them.
func (c *Cluster) InstallFirst(ctx context.Context, before int, names []string) (*Batch, error) {
	return c.counted(ctx, before, names, func(ctx context.Context, names []string) error { return c.subscribe(ctx, names, channelFirst) })
}

// Update publishes a version that replaces the installed one, and counts the cost until all of some
// namespaces have it.
func (c *Cluster) Update(ctx context.Context, names []string) (*Batch, error) {
	return c.counted(ctx, len(names), names, func(ctx context.Context, names []string) error {
		if err := c.registry.publish(nextVersion); err != nil {
			return err
		}
		return c.atLatest(ctx, names, nextVersion)
	})
}

// Rest counts the requests in a period without changes, with the operator in some namespaces.
func (c *Cluster) Rest(ctx context.Context, names []string, period time.Duration) (*Batch, error) {
	return c.counted(ctx, len(names), names, func(ctx context.Context, _ []string) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(period):
			return nil
		}
	})
}

// counted counts the cost of a function for some namespaces.
func (c *Cluster) counted(ctx context.Context, before int, names []string, do func(context.Context, []string) error) (*Batch, error) {
	start, err := c.measure(ctx)
	if err != nil {
		return nil, err
	}
	b, err := c.plane.batch(ctx, names, do)
	if err != nil {
		return nil, err
	}
	end, err := c.measure(ctx)
	if err != nil {
		return nil, err
	}
	b.Before = before
	b.Reconciles = added(start.reconciles, end.reconciles)
	b.Supervisor, b.Memory, b.Resident = end.processor-start.processor, end.memory, end.resident
	return b, nil
}

// subscribe creates Subscriptions to a channel, and waits until all are AtLatestKnown.
func (c *Cluster) subscribe(ctx context.Context, names []string, channel string) error {
	err := each(ctx, names, func(ctx context.Context, name string) error {
		return c.plane.create(ctx, subscription(name, channel))
	})
	if err != nil {
		return err
	}
	return c.atLatest(ctx, names, firstVersion)
}

// atLatest waits until the Subscriptions of some namespaces are AtLatestKnown with a version.
func (c *Cluster) atLatest(ctx context.Context, names []string, version string) error {
	return c.plane.reached(ctx, names, &operatorsv1alpha1.SubscriptionList{}, func(o client.Object) bool {
		sub, is := o.(*operatorsv1alpha1.Subscription)
		return is && sub.Status.State == operatorsv1alpha1.SubscriptionStateAtLatest && sub.Status.InstalledCSV == packageName+".v"+version
	})
}
