package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/test/audit"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
)

const (
	catalogNamespace, catalogName = "olm", "scale"
	// home is the namespace of the supervisor, and account the user that it has.
	home    = "chandlery-system"
	account = "system:serviceaccount:chandlery-system:chandlery-supervisor"

	patience = 2 * time.Minute
	polling  = 100 * time.Millisecond
)

// Options say what runs.
type Options struct {
	// Root is the folder of the repository, and Dir one with the programs registry and
	// supervisor, which gets their logs.
	Root, Dir string
	// Args are further arguments of the supervisor.
	Args []string
}

// Cluster is a control plane with kwok's nodes, a catalog, and one supervisor with the rights that
// it has in a cluster.
type Cluster struct {
	options    Options
	plane      *controlplane.ControlPlane
	client     client.WithWatch
	registry   *process.Process
	supervisor *process.Process
	metrics    string
	log        *audit.Log
}

// Start starts everything.
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	ctrllog.SetLogger(logr.Discard())
	plane, err := controlplane.Start(ctx, controlplane.Options{AuditReads: true, EtcdQuota: 8 << 30})
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: o, plane: plane, log: audit.Open(plane.AuditLog())}
	for _, step := range []func(context.Context) error{c.connect, c.grant, c.serve, c.supervise} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, c.Stop())
		}
	}
	return c, nil
}

// Stop ends everything.
func (c *Cluster) Stop() error {
	const grace = 10 * time.Second
	var failures []error
	for _, p := range []*process.Process{c.supervisor, c.registry} {
		if p != nil {
			failures = append(failures, p.Stop(grace))
		}
	}
	return errors.Join(append(failures, c.plane.Stop())...)
}

func (c *Cluster) connect(ctx context.Context) error {
	if err := programs.InstallCRDs(ctx, filepath.Join(c.options.Dir, "supervisor"), c.plane.Kubeconfig()); err != nil {
		return err
	}
	scheme, err := supervisor.NewScheme()
	if err != nil {
		return err
	}
	cfg := c.plane.Config()
	cfg.QPS = -1
	if c.client, err = client.NewWithWatch(cfg, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	return nil
}

func (c *Cluster) grant(ctx context.Context) error {
	for _, name := range []string{catalogNamespace, home} {
		if err := c.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
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

// serve starts the registry on a catalog of one package.
func (c *Cluster) serve(ctx context.Context) error {
	catalog := filepath.Join(c.options.Dir, "catalog")
	if err := os.MkdirAll(catalog, 0o755); err != nil {
		return fmt.Errorf("making a folder for the catalog: %w", err)
	}
	text, err := catalogText(packageName)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(catalog, packageName+".json"), text, 0o644); err != nil {
		return fmt.Errorf("writing the catalog: %w", err)
	}
	address, err := ports.Reserve(ctx)
	if err != nil {
		return err
	}
	if c.registry, err = c.start(ctx, "registry", "serve", catalog, "--host", "127.0.0.1", "--port", strconv.Itoa(address.Number),
		"--metrics-address", "0", "--termination-log", ""); err != nil {
		return err
	}
	return c.create(ctx, &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: catalogNamespace, Name: catalogName},
		Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: address.Address()},
	})
}

// supervise starts the supervisor and waits until it has read the catalog.
func (c *Cluster) supervise(ctx context.Context) error {
	kubeconfig, err := c.plane.NewKubeconfig(account, "system:serviceaccounts", "system:serviceaccounts:"+home, "system:authenticated")
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
	}, c.options.Args...)
	if c.supervisor, err = c.start(ctx, "supervisor", args...); err != nil {
		return err
	}
	return c.await(ctx, "the catalog to be READY", func(ctx context.Context) (bool, error) {
		source := &operatorsv1alpha1.CatalogSource{}
		err := c.client.Get(ctx, client.ObjectKey{Namespace: catalogNamespace, Name: catalogName}, source)
		state := source.Status.GRPCConnectionState
		return state != nil && state.LastObservedState == "READY", err
	})
}

func (c *Cluster) start(ctx context.Context, program string, args ...string) (*process.Process, error) {
	return process.Start(ctx, process.Spec{
		Name: program, Path: filepath.Join(c.options.Dir, program), Args: args, Log: filepath.Join(c.options.Dir, program+".log"),
	})
}

func (c *Cluster) create(ctx context.Context, o client.Object) error {
	if err := c.client.Create(ctx, o); err != nil {
		return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
	}
	return nil
}

// await waits until something holds. That the supervisor ends is an error.
func (c *Cluster) await(ctx context.Context, what string, holds wait.ConditionWithContextFunc) error {
	err := wait.PollUntilContextTimeout(ctx, polling, patience, true, func(ctx context.Context) (bool, error) {
		ok, err := holds(ctx)
		if c.supervisor != nil {
			err = errors.Join(err, c.supervisor.Unexpected())
		}
		return ok, err
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}
