package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/filelock"
	"github.com/chandlery/chandlery/test/images"
)

// Client is the machine without a kubelet from which Command accesses the cluster.
const Client = "client"

const (
	// lockFile is locked by the only bed on this machine.
	lockFile = "/run/" + prefix + "-nodes.lock"
	// settingsFile holds the kernel settings from before the bed, while it runs.
	settingsFile = "/run/" + prefix + "-nodes.settings"
)

// Bed is a running cluster with real nodes. Its methods are safe for concurrent use.
type Bed struct {
	options  Options
	dir      string
	lock     *filelock.Lock
	settings settings
	images   *imageServer
	plane    *controlplane.ControlPlane
	client   kubernetes.Interface
	// machines are the client and the nodes.
	machines []*machine
}

// Start builds missing programs, waits until no other bed runs on this machine, removes what a
// killed one has left, and returns when every node is Ready. The bed keeps running after ctx ends,
// until Stop or the end of this process. If the machine cannot run nodes, the error is an
// *UnsupportedError.
func Start(ctx context.Context, o Options) (*Bed, error) {
	o = o.withDefaults()

	err := Check(ctx)
	if err != nil {
		return nil, err
	}

	programs, err := build(ctx, o.Progress)
	if err != nil {
		return nil, err
	}

	lock, err := filelock.Acquire(ctx, lockFile, func() {
		fmt.Fprintln(o.Progress, "waiting for another test bed of this machine to stop (`make nodes-down` stops that of `make nodes-up`)")
	})
	if err != nil {
		return nil, fmt.Errorf("start the nodes: %w", err)
	}

	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("the nodes did not start within %s", startLimit))
	defer cancel()

	b := &Bed{options: o, lock: lock}

	err = b.start(ctx, programs)
	if err != nil {
		return nil, fmt.Errorf("start the nodes: %w", errors.Join(err, b.Stop())) //nolint:contextcheck // What was started is removed after ctx too.
	}

	return b, nil
}

func (b *Bed) start(ctx context.Context, programs programs) error {
	err := sweep(ctx)
	if err != nil {
		return err
	}

	err = b.makeFolders()
	if err != nil {
		return err
	}

	b.settings, err = readSettings(settingsFile, kernelSettings())
	if err != nil {
		return err
	}

	b.addMachines(programs)

	var names []string
	for _, m := range b.machines {
		names = append(names, m.name)
	}

	err = networkUp(ctx, names)
	if err != nil {
		return err
	}

	err = b.startImages(ctx, programs)
	if err != nil {
		return err
	}

	err = b.startControlPlane(ctx)
	if err != nil {
		return err
	}

	return b.startMachines(ctx)
}

// makeFolders creates the folder of the bed.
func (b *Bed) makeFolders() error {
	b.dir = b.options.Dir
	if b.dir == "" {
		root, err := buildcache.Root()
		if err != nil {
			return err
		}

		// The lock makes this bed the only one. Existing files were left by a killed one.
		b.dir = filepath.Join(root, "nodes")

		err = os.RemoveAll(b.dir)
		if err != nil {
			return fmt.Errorf("remove what an earlier bed left: %w", err)
		}
	}

	dir, err := filepath.Abs(b.dir)
	if err != nil {
		return fmt.Errorf("resolve the folder of the bed: %w", err)
	}

	b.dir = dir

	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		return fmt.Errorf("use folder %s: it is not empty (%s): choose another or remove what it holds", dir, entries[0].Name())
	}

	for _, folder := range []string{b.LogDir(), b.blobs()} {
		err = os.MkdirAll(folder, 0o755)
		if err != nil {
			return fmt.Errorf("make a folder of the bed: %w", err)
		}
	}

	return nil
}

func (b *Bed) blobs() string { return filepath.Join(b.dir, "images") }

func (b *Bed) addMachines(programs programs) {
	for number := range b.options.Nodes + 1 {
		name := nodeName(number)
		if number == 0 {
			name = Client
		}

		b.machines = append(b.machines, &machine{
			name: name, number: number, programs: programs,
			dir: filepath.Join(b.dir, name), logs: b.LogDir(),
		})
	}
}

func (b *Bed) startImages(ctx context.Context, programs programs) error {
	var err error

	b.images, err = serveImages(ctx, b.blobs())
	if err != nil {
		return err
	}

	pause, err := images.Program(filepath.Join(programs.pause, "pause"), "pause")
	if err != nil {
		return err
	}

	_, err = b.Push(ctx, pause, pauseImage)

	return err
}

func (b *Bed) startControlPlane(ctx context.Context) error {
	plane, err := controlplane.Start(ctx, controlplane.Options{
		Address:                hostAddress,
		NodeMonitorGracePeriod: b.options.NodeMonitorGracePeriod,
		AuditReads:             b.options.AuditReads,
		Dir:                    filepath.Join(b.dir, "controlplane"),
		Progress:               b.options.Progress,
	})
	if err != nil {
		return err
	}

	b.plane = plane

	b.client, err = kubernetes.NewForConfig(plane.Config())
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}

	return nil
}

// startMachines starts all machines concurrently and waits for the nodes.
func (b *Bed) startMachines(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)

	for _, m := range b.machines {
		err := b.configure(m)
		if err != nil {
			return errors.Join(err, group.Wait())
		}

		group.Go(func() error {
			err := b.run(ctx, m)
			if err != nil || m.number == 0 {
				return err
			}

			return b.waitForNode(ctx, m)
		})
	}

	return group.Wait()
}

// Stop ends every process of the bed and removes what it created: namespaces, links, control groups
// and, unless Options chose it, the folder. Pods are killed. Leftovers are an error. A second call
// does nothing.
func (b *Bed) Stop() error {
	if b.lock == nil {
		return nil
	}

	//nolint:forbidigo // What was started is removed whether or not the caller still waits.
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()

	var failures []error

	for _, m := range b.machines {
		failures = append(failures, m.off())
	}

	if b.plane != nil {
		failures = append(failures, b.plane.Stop())
	}

	if b.images != nil {
		failures = append(failures, b.images.stop())
	}

	// The lock still prevents other beds from creating anything, which this check would find.
	failures = append(failures, sweep(ctx), nothingLeft(ctx), b.settings.restore(settingsFile))

	if b.options.Dir == "" && b.dir != "" {
		failures = append(failures, os.RemoveAll(b.dir))
	}

	failures = append(failures, b.lock.Release())
	b.lock = nil

	err := errors.Join(failures...)
	if err != nil {
		return fmt.Errorf("stop the nodes: %w", err)
	}

	return nil
}

// sweep removes what outlives the processes of a bed.
func sweep(ctx context.Context) error {
	return errors.Join(removeCgroups(ctx, cgroupFolder, prefix+"-"), networkDown(ctx))
}

// Err returns the errors of ended programs of the control plane and of machines that are switched on.
func (b *Bed) Err() error {
	failures := []error{b.plane.Err()}
	for _, m := range b.machines {
		failures = append(failures, m.err())
	}

	return errors.Join(failures...)
}

// Config returns the access of a cluster administrator. It works on this machine, on every machine
// of the bed and in pods. Each call returns a copy.
func (b *Bed) Config() *rest.Config { return b.plane.Config() }

// Kubeconfig returns the path of a file with the same access.
func (b *Bed) Kubeconfig() string { return b.plane.Kubeconfig() }

// Kubectl returns the path of a kubectl of the same version.
func (b *Bed) Kubectl() string { return b.plane.Kubectl() }

// ControlPlane returns the control plane. Its components can be stopped.
func (b *Bed) ControlPlane() *controlplane.ControlPlane { return b.plane }

// LogDir returns the directory of the machines' logs: one file for each machine and program.
func (b *Bed) LogDir() string { return filepath.Join(b.dir, "logs") }

// SaveLogs creates dir and copies the logs of the machines and of the control plane into it.
func (b *Bed) SaveLogs(dir string) error {
	err := os.CopyFS(dir, os.DirFS(b.LogDir()))
	if err == nil {
		err = b.plane.SaveLogs(filepath.Join(dir, "controlplane"))
	}

	if err != nil {
		return fmt.Errorf("save the logs of the nodes: %w", err)
	}

	return nil
}

// Nodes returns the names of the nodes. The first has the number 1.
func (b *Bed) Nodes() []string {
	var names []string
	for _, m := range b.machines[1:] {
		names = append(names, m.name)
	}

	return names
}

// Command returns a program of this machine to run in the network of a machine of the bed: Client
// or the name of a node. It sees the files and processes of this machine, and continues when the
// node is lost.
func (*Bed) Command(ctx context.Context, machine, program string, args ...string) *exec.Cmd {
	return Command(ctx, machine, program, args...)
}

// Command is the method Command for the bed of any process.
func Command(ctx context.Context, machine, program string, args ...string) *exec.Cmd {
	enter := []string{"--net=" + filepath.Join(netnsFolder, netns(machine)), "--", program}

	return exec.CommandContext(ctx, "nsenter", append(enter, args...)...)
}
