package olmpeer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api/scheme"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/process"
)

const (
	patience = 2 * time.Minute
	polling  = 100 * time.Millisecond
	// grace bounds the end of a program after SIGTERM.
	grace = 10 * time.Second
)

// Options configure the peer.
type Options struct {
	// Programs is the folder from Build. Logs is an existing folder for olm.log, catalog.log and their
	// kubeconfigs. Its path must not contain a colon.
	Programs, Logs string
	// Namespace is the namespace of OLM; empty for the constant of that name.
	Namespace string
	// Plane is a control plane that serves the kinds of operators.coreos.com.
	Plane *controlplane.ControlPlane
	// Protected is a namespace that gets copies of versions although copies are disabled. It may be empty.
	Protected string
	// Pods are the images of OLM's pods. Without them, no node runs pods, and catalogs are served by address.
	Pods *Pods
}

// Peer is a running OLM. Its two programs run with the flags of OLM's chart, but without
// certificates for their metrics. Both then serve metrics on port 8080 of every address. The
// program that finds the port in use logs this and works without metrics.
type Peer struct {
	options  Options
	client   client.Client
	operator *process.Process
	catalog  *process.Process
	// services connects OLM to the pods of catalogs; nil without pods.
	services *services
}

// New returns a peer for an OLM whose objects exist, without starting its programs. StartOperator and StartCatalog start
// them.
func New(o Options) (*Peer, error) {
	o.Namespace = cmp.Or(o.Namespace, Namespace)
	kinds, err := scheme.New()
	if err != nil {
		return nil, fmt.Errorf("starting OLM: %w", err)
	}
	p := &Peer{options: o}
	if p.client, err = client.New(o.Plane.Config(), client.Options{Scheme: kinds}); err != nil {
		return nil, fmt.Errorf("starting OLM: making a client: %w", err)
	}
	return p, nil
}

// Start creates the objects of OLM's chart and starts both programs. It returns when the operator
// has reconciled OLM's configuration and its OperatorGroup. AwaitCatalog waits for the other
// program. Stop ends both.
func Start(ctx context.Context, o Options) (*Peer, error) {
	p, err := New(o)
	if err != nil {
		return nil, err
	}
	if err := createObjects(ctx, p.client, p.options.Namespace); err != nil {
		return nil, fmt.Errorf("starting OLM: %w", err)
	}
	if o.Pods != nil {
		if p.services, err = serveServices(ctx, p.client, "127.0.0.1"); err != nil {
			return nil, fmt.Errorf("starting OLM: %w", err)
		}
	}
	if err := p.Restart(ctx); err != nil {
		return nil, err
	}
	if err := p.await(ctx, "its operator to work", p.operatorWorks); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// Restart starts both programs again after Stop. catalogArgs are further arguments of the program for catalogs.
func (p *Peer) Restart(ctx context.Context, catalogArgs ...string) error {
	if err := p.startPrograms(ctx, catalogArgs); err != nil {
		return errors.Join(fmt.Errorf("starting OLM: %w", err), p.Stop())
	}
	return nil
}

// Remove stops both programs and deletes the objects that Start created, except OLM's namespace.
func (p *Peer) Remove(ctx context.Context) error {
	return errors.Join(p.Stop(), deleteObjects(ctx, p.client, p.options.Namespace))
}

func (p *Peer) startPrograms(ctx context.Context, more []string) error {
	var err error
	if p.operator, err = p.StartOperator(ctx); err != nil {
		return err
	}
	p.catalog, err = p.startCatalog(ctx, more)
	return err
}

// StartOperator starts another process of the program that reconciles ClusterServiceVersions. The caller ends it.
func (p *Peer) StartOperator(ctx context.Context) (*process.Process, error) {
	return p.start(ctx, operatorProgram, "--namespace", p.options.Namespace, "--writeStatusName", "", "--protectedCopiedCSVNamespaces", p.options.Protected)
}

// StartCatalog starts another process of the program that reconciles Subscriptions. The caller ends it.
func (p *Peer) StartCatalog(ctx context.Context) (*process.Process, error) {
	return p.startCatalog(ctx, nil)
}

func (p *Peer) startCatalog(ctx context.Context, more []string) (*process.Process, error) {
	args := append([]string{"--namespace", p.options.Namespace, "--set-workload-user-id=true"}, more...)
	if p.options.Pods != nil {
		args = append(args, p.options.Pods.flags()...)
	}
	return p.start(ctx, catalogProgram, args...)
}

// start starts a process of a program.
func (p *Peer) start(ctx context.Context, program string, args ...string) (*process.Process, error) {
	kubeconfig, err := writeKubeconfig(p.options, program)
	if err != nil {
		return nil, err
	}
	// The operator has no flag for the kubeconfig. OLM must not get the variables of this process.
	environment := []string{"KUBECONFIG=" + kubeconfig}
	if p.services != nil {
		environment = append(environment, "GRPC_PROXY="+p.services.url())
	}
	return process.Start(ctx, process.Spec{
		Name: "OLM's program " + program, Path: filepath.Join(p.options.Programs, program), Args: args,
		Env: environment, Log: filepath.Join(p.options.Logs, program+".log"),
	})
}

// writeKubeconfig writes a kubeconfig of a program for the account and returns its path. The path must not
// contain a colon, as the account does, because $KUBECONFIG is a colon-separated list of paths.
func writeKubeconfig(o Options, program string) (string, error) {
	original, err := o.Plane.NewKubeconfig(AccountIn(o.Namespace), "system:serviceaccounts", "system:serviceaccounts:"+o.Namespace, "system:authenticated")
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(original)
	if err != nil {
		return "", fmt.Errorf("reading the kubeconfig of OLM: %w", err)
	}
	path := filepath.Join(o.Logs, program+".kubeconfig")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", fmt.Errorf("writing the kubeconfig of OLM: %w", err)
	}
	return path, nil
}

// operatorWorks reports whether OLM's configuration and its OperatorGroup have a status.
func (p *Peer) operatorWorks(ctx context.Context) (bool, error) {
	settings, group := config(), operatorGroup(p.options.Namespace)
	err := errors.Join(
		p.client.Get(ctx, client.ObjectKeyFromObject(settings), settings), p.client.Get(ctx, client.ObjectKeyFromObject(group), group),
	)
	return len(settings.Status.Conditions) > 0 && len(group.Status.Namespaces) > 0, err
}

// AwaitCatalog waits until OLM is connected to the server of a CatalogSource.
func (p *Peer) AwaitCatalog(ctx context.Context, key client.ObjectKey) error {
	return p.await(ctx, "CatalogSource "+key.String()+" to be READY", func(ctx context.Context) (bool, error) {
		source := &operatorsv1alpha1.CatalogSource{}
		err := p.client.Get(ctx, key, source)
		state := source.Status.GRPCConnectionState
		return state != nil && state.LastObservedState == "READY", err
	})
}

func (p *Peer) await(ctx context.Context, what string, holds wait.ConditionWithContextFunc) error {
	ctx, cancel := p.While(ctx)
	defer cancel()
	err := wait.PollUntilContextTimeout(ctx, polling, patience, true, holds)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err != nil {
		return fmt.Errorf("waiting for OLM: %s: %w", what, err)
	}
	return nil
}

// While returns a context that is canceled by cancel or when one of the programs ends. Then the
// cause is a *process.ExitError.
func (p *Peer) While(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-p.operator.Done():
			end(p.operator.Unexpected())
		case <-p.catalog.Done():
			end(p.catalog.Unexpected())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { end(nil) }
}

// PIDs returns the process IDs of both programs.
func (p *Peer) PIDs() []int { return []int{p.operator.PID(), p.catalog.PID()} }

// Stop ends both programs. Their exit status does not count: while OLM stops, a queue may panic.
func (p *Peer) Stop() error {
	var failures []error
	for _, one := range []*process.Process{p.catalog, p.operator} {
		if one == nil {
			continue
		}
		err := one.Stop(grace)
		if _, exited := errors.AsType[*exec.ExitError](err); !exited {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}
