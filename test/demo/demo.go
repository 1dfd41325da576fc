package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/chandlery/chandlery/examples"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/demo/timeline"
	"github.com/chandlery/chandlery/test/filelock"
	"github.com/chandlery/chandlery/test/programs"
)

// Names and times of the demo.
const (
	catalogNamespace = "olm"
	catalogName      = "demo"
	leaseName        = "chandlery-supervisor"
	// refresh is the interval at which a supervisor checks the catalog.
	refresh = "2s"
)

// demo holds the parts of the demo. The step of run that creates a part sets its field.
type demo struct {
	config
	*teller

	crew     *crew
	plane    *controlplane.ControlPlane
	registry string // host:port
	metrics  map[string]string
	conn     *grpc.ClientConn
	world    *world
	results  []timeline.Summary
}

// run runs the demo and then waits until ctx ends. The end of ctx is the user's way to stop it and no error.
func run(ctx context.Context, c config, t *teller) (err error) {
	lock, err := filelock.Try(strings.TrimRight(c.dir, "/") + ".lock")
	if err != nil {
		return fmt.Errorf("another demo uses %s (give --dir another folder): %w", c.dir, err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()

	playing, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	go t.refresh(playing)
	d := &demo{config: c, teller: t, metrics: map[string]string{}, crew: &crew{fail: fail}}
	err = d.play(playing)
	if ctx.Err() != nil {
		err = nil // errors are expected after the user has stopped the demo
	}
	fail(nil) // ends the watches, which would delay the stop of the API server
	return errors.Join(err, d.leave())
}

// play runs all steps.
func (d *demo) play(ctx context.Context) error {
	for _, step := range []func(context.Context) error{d.prepare, d.startServers, d.startSupervisors, d.addCatalog} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	story := d.playGiven
	if d.catalog == "" {
		story = d.playSample
	}
	err := story(ctx)
	if err != nil {
		d.explain(ctx)
	}
	d.titlef("Summary")
	d.print(strings.TrimRight(d.style.Table(d.results), "\n"))
	if err != nil {
		return err
	}
	if d.exit {
		return nil
	}
	d.lookAround()
	discardTyped(os.Stdin)
	waitForEnter(ctx, os.Stdin)
	return context.Cause(ctx)
}

// prepare empties the demo's folder and builds the registry.
func (d *demo) prepare(ctx context.Context) error {
	d.titlef("Starting")
	dir, err := filepath.Abs(d.dir)
	if err != nil {
		return fmt.Errorf("finding the demo's folder: %w", err)
	}
	d.dir = dir
	d.crew.logs = filepath.Join(dir, "logs")
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(d.crew.logs, 0o755)); err != nil {
		return fmt.Errorf("preparing the demo's folder: %w", err)
	}
	if d.bin != "" {
		d.crew.bin = d.bin
		return nil
	}
	d.crew.bin = filepath.Join(dir, "bin")
	return d.build(ctx, "registry")
}

// build builds one of our programs.
func (d *demo) build(ctx context.Context, name string) error {
	progress, began := buildProgress{d.teller}, time.Now()
	fmt.Fprintf(progress, "building %s\n", name)
	if err := programs.Build(ctx, d.crew.bin, "./cmd/"+name); err != nil {
		return err
	}
	fmt.Fprintf(progress, "built %s in %.0f s\n", name, time.Since(began).Seconds())
	return nil
}

// startServers starts the registry and prints its answers while the control plane is built, which takes minutes the
// first time.
func (d *demo) startServers(ctx context.Context) error {
	tasks, ctx := errgroup.WithContext(ctx)
	tasks.Go(func() error { return d.startControlPlane(ctx) })
	tasks.Go(func() error {
		if err := d.startRegistry(ctx); err != nil {
			return err
		}
		return d.showCatalog(ctx)
	})
	return tasks.Wait()
}

func (d *demo) startControlPlane(ctx context.Context) error {
	defer d.work("")
	if d.bin == "" {
		if err := d.build(ctx, "supervisor"); err != nil {
			return err
		}
	}
	progress := buildProgress{d.teller}
	if _, err := controlplane.Build(ctx, progress); err != nil {
		return err
	}
	d.work("starting the control plane")
	plane, err := controlplane.Start(ctx, controlplane.Options{Progress: progress})
	if err != nil {
		return fmt.Errorf("starting the control plane: %w", err)
	}
	d.plane = plane
	for link, to := range map[string]string{"kubeconfig": plane.Kubeconfig(), "kubectl": plane.Kubectl()} {
		if err := os.Symlink(to, filepath.Join(d.dir, link)); err != nil {
			return fmt.Errorf("preparing the demo's folder: %w", err)
		}
	}
	d.say(timeline.Line{
		Subject: "control plane", Name: fmt.Sprintf("%d nodes", len(plane.Nodes())), State: "ready", Tone: timeline.Good,
		Detail: "etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok",
	})
	return nil
}

// startRegistry serves the given catalog, or the sample with its first version.
func (d *demo) startRegistry(ctx context.Context) error {
	served := d.catalog
	if served == "" {
		served = d.sampleDir()
		if err := writeSample(served, examples.Bundles(), 1); err != nil {
			return err
		}
	}
	var err error
	if d.registry, err = address(ctx, d.port); err != nil {
		return err
	}
	if d.metrics["registry"], err = address(ctx, 0); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(d.registry)
	if err != nil {
		return fmt.Errorf("reading the registry's address: %w", err)
	}
	if err := d.crew.start(ctx, task{"registry", "registry", []string{
		"serve", served, "--host", host, "--port", port, "--metrics-address", d.metrics["registry"],
	}}); err != nil {
		return err
	}
	if d.conn, err = dial(d.registry); err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, d.timeout, &lateError{"the registry serves", d.timeout})
	defer cancel()
	if err := serving(limited, d.conn); err != nil {
		return err
	}
	d.say(timeline.Line{Subject: "registry", Name: d.registry, State: "serving", Detail: served, Tone: timeline.Good})
	return nil
}

func (d *demo) sampleDir() string { return filepath.Join(d.dir, "catalog") }

// startSupervisors installs the definitions and starts two supervisors.
func (d *demo) startSupervisors(ctx context.Context) error {
	install := task{"supervisor", "install-crds", []string{"install-crds", "--kubeconfig", d.plane.Kubeconfig()}}
	if err := d.crew.finish(ctx, install, d.timeout); err != nil {
		return err
	}
	d.say(timeline.Line{Subject: "definitions", Name: "operators.coreos.com", State: "installed", Tone: timeline.Good})
	var err error
	if d.world, err = newWorld(ctx, d.plane.Config(), d.teller); err != nil {
		return err
	}
	d.world.steps = len(d.packages) == 1
	if err := d.world.ensure(ctx, namespace(catalogNamespace)); err != nil {
		return err
	}
	for _, name := range []string{"supervisor-a", "supervisor-b"} {
		if err := d.startSupervisor(ctx, name); err != nil {
			return err
		}
	}
	_, err = d.leader(ctx, "")
	return err
}

// startSupervisor starts one supervisor under its name.
func (d *demo) startSupervisor(ctx context.Context, name string) error {
	metrics, err := address(ctx, 0)
	if err != nil {
		return err
	}
	health, err := address(ctx, 0)
	if err != nil {
		return err
	}
	began := time.Now()
	d.metrics[name] = metrics
	err = d.crew.start(ctx, task{"supervisor", name, []string{
		"run",
		"--kubeconfig", d.plane.Kubeconfig(),
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
	limited, cancel := context.WithTimeoutCause(ctx, d.timeout, &lateError{name + " is ready", d.timeout})
	defer cancel()
	if err := ready(limited, "http://"+health+"/readyz"); err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	d.say(timeline.Line{
		Subject: "supervisor", Name: name, State: "ready",
		Detail: fmt.Sprintf("%.1f s after its start", time.Since(began).Seconds()),
	})
	return nil
}

// leave stops everything, in the order of dependencies.
func (d *demo) leave() error {
	d.titlef("Stopping")
	failures := []error{d.crew.stopAll()}
	if d.conn != nil {
		failures = append(failures, d.conn.Close())
	}
	if d.plane != nil {
		failures = append(failures, d.plane.Err(), d.plane.Stop())
	}
	err := errors.Join(failures...)
	if err == nil {
		d.say(timeline.Line{Subject: "everything", State: "stopped", Tone: timeline.Good, Detail: "logs are in " + d.crew.logs})
	}
	return err
}
