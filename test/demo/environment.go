package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/chandlery/chandlery/examples"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/demo/timeline"
	"github.com/chandlery/chandlery/test/programs"
)

// environment holds the programs of the demo and the connections to them. The step of start that creates a part sets
// its field.
type environment struct {
	config
	*printer

	processes *processes
	plane     *controlplane.ControlPlane
	registry  string // host:port
	metrics   map[string]string
	conn      *grpc.ClientConn
	world     *world
}

// start starts everything.
func (e *environment) start(ctx context.Context) error {
	for _, step := range []func(context.Context) error{e.prepare, e.startServers, e.startSupervisors} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// prepare empties the demo's folder and builds the registry.
func (e *environment) prepare(ctx context.Context) error {
	e.titlef("Starting")
	dir, err := filepath.Abs(e.dir)
	if err != nil {
		return fmt.Errorf("finding the demo's folder: %w", err)
	}
	e.dir = dir
	e.processes.logs = filepath.Join(dir, "logs")
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(e.processes.logs, 0o755)); err != nil {
		return fmt.Errorf("preparing the demo's folder: %w", err)
	}
	if e.bin != "" {
		e.processes.bin = e.bin
		return nil
	}
	e.processes.bin = filepath.Join(dir, "bin")
	return e.build(ctx, "registry")
}

// build builds one of our programs.
func (e *environment) build(ctx context.Context, name string) error {
	progress, began := buildProgress{e.printer}, time.Now()
	fmt.Fprintf(progress, "building %s\n", name)
	if err := programs.Build(ctx, e.processes.bin, "./cmd/"+name); err != nil {
		return err
	}
	fmt.Fprintf(progress, "built %s in %.0f s\n", name, time.Since(began).Seconds())
	return nil
}

// startServers starts the registry and prints its answers while the control plane is built, which takes minutes the
// first time.
func (e *environment) startServers(ctx context.Context) error {
	tasks, ctx := errgroup.WithContext(ctx)
	tasks.Go(func() error { return e.startControlPlane(ctx) })
	tasks.Go(func() error {
		if err := e.startRegistry(ctx); err != nil {
			return err
		}
		return e.showCatalog(ctx)
	})
	return tasks.Wait()
}

func (e *environment) startControlPlane(ctx context.Context) error {
	defer e.work("")
	if e.bin == "" {
		if err := e.build(ctx, "supervisor"); err != nil {
			return err
		}
	}
	progress := buildProgress{e.printer}
	if _, err := controlplane.Build(ctx, progress); err != nil {
		return err
	}
	e.work("starting the control plane")
	plane, err := controlplane.Start(ctx, controlplane.Options{Progress: progress})
	if err != nil {
		return fmt.Errorf("starting the control plane: %w", err)
	}
	e.plane = plane
	for link, to := range map[string]string{"kubeconfig": plane.Kubeconfig(), "kubectl": plane.Kubectl()} {
		if err := os.Symlink(to, filepath.Join(e.dir, link)); err != nil {
			return fmt.Errorf("preparing the demo's folder: %w", err)
		}
	}
	e.printNow(timeline.Line{
		Subject: "control plane", Name: fmt.Sprintf("%d nodes", len(plane.Nodes())), State: "ready", Tone: timeline.Good,
		Detail: "etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok",
	})
	return nil
}

// startRegistry serves the given catalog, or the sample with its first version.
func (e *environment) startRegistry(ctx context.Context) error {
	served := e.catalog
	if served == "" {
		served = e.sampleDir()
		if err := writeSample(served, examples.Bundles(), 1); err != nil {
			return err
		}
	}
	var err error
	if e.registry, err = address(ctx, e.port); err != nil {
		return err
	}
	if e.metrics["registry"], err = address(ctx, 0); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(e.registry)
	if err != nil {
		return fmt.Errorf("reading the registry's address: %w", err)
	}
	if err := e.processes.start(ctx, task{"registry", "registry", []string{
		"serve", served, "--host", host, "--port", port, "--metrics-address", e.metrics["registry"],
	}}); err != nil {
		return err
	}
	if e.conn, err = dial(e.registry); err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, e.timeout, &lateError{"the registry serves", e.timeout})
	defer cancel()
	if err := serving(limited, e.conn); err != nil {
		return err
	}
	e.printNow(timeline.Line{Subject: "registry", Name: e.registry, State: "serving", Detail: served, Tone: timeline.Good})
	return nil
}

func (e *environment) sampleDir() string { return filepath.Join(e.dir, "catalog") }

// startSupervisors installs the definitions and starts two supervisors.
func (e *environment) startSupervisors(ctx context.Context) error {
	install := task{"supervisor", "install-crds", []string{"install-crds", "--kubeconfig", e.plane.Kubeconfig()}}
	if err := e.processes.finish(ctx, install, e.timeout); err != nil {
		return err
	}
	e.printNow(timeline.Line{Subject: "definitions", Name: "operators.coreos.com", State: "installed", Tone: timeline.Good})
	var err error
	if e.world, err = newWorld(ctx, e.plane.Config(), e.printer); err != nil {
		return err
	}
	e.world.steps = len(e.packages) == 1
	if err := e.world.ensure(ctx, namespace(catalogNamespace)); err != nil {
		return err
	}
	for _, name := range []string{"supervisor-a", "supervisor-b"} {
		if err := e.startSupervisor(ctx, name); err != nil {
			return err
		}
	}
	_, err = e.world.leader(ctx, "", e.timeout)
	return err
}

// startSupervisor starts one supervisor under its name.
func (e *environment) startSupervisor(ctx context.Context, name string) error {
	metrics, err := address(ctx, 0)
	if err != nil {
		return err
	}
	health, err := address(ctx, 0)
	if err != nil {
		return err
	}
	began := time.Now()
	e.metrics[name] = metrics
	err = e.processes.start(ctx, task{"supervisor", name, []string{
		"run",
		"--kubeconfig", e.plane.Kubeconfig(),
		"--identity", name,
		"--leader-election-namespace", catalogNamespace,
		"--global-catalog-namespace", catalogNamespace,
		"--metrics-address", metrics,
		"--health-address", health,
		"--catalog-refresh-interval", refresh,
	}})
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, e.timeout, &lateError{name + " is ready", e.timeout})
	defer cancel()
	if err := ready(limited, "http://"+health+"/readyz"); err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	e.printNow(timeline.Line{
		Subject: "supervisor", Name: name, State: "ready",
		Detail: fmt.Sprintf("%.1f s after its start", time.Since(began).Seconds()),
	})
	return nil
}

// stop stops everything, in the order of dependencies.
func (e *environment) stop() error {
	e.titlef("Stopping")
	failures := []error{e.processes.stopAll()}
	if e.conn != nil {
		failures = append(failures, e.conn.Close())
	}
	if e.plane != nil {
		failures = append(failures, e.plane.Err(), e.plane.Stop())
	}
	err := errors.Join(failures...)
	if err == nil {
		e.printNow(timeline.Line{Subject: "everything", State: "stopped", Tone: timeline.Good, Detail: "logs are in " + e.processes.logs})
	}
	return err
}
