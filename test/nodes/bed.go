package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

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
	// Images is the registry of the nodes.
	Images *ImageRegistry

	options  Options
	dir      string
	lock     *filelock.Lock
	settings settings
	plane    *controlplane.ControlPlane
	machines machines
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

	b.dir, err = makeFolder(b.options.Dir)
	if err != nil {
		return err
	}

	b.settings, err = readSettings(settingsFile, kernelSettings())
	if err != nil {
		return err
	}

	b.machines = newMachines(b.options.Nodes, b.dir, programs)

	err = networkUp(ctx, b.machines.names())
	if err != nil {
		return err
	}

	b.Images, err = serveImages(ctx, blobDir(b.dir))
	if err != nil {
		return err
	}

	err = pushPause(ctx, b.Images, programs)
	if err != nil {
		return err
	}

	b.plane, err = controlplane.Start(ctx, controlplane.Options{
		Address:                hostAddress,
		NodeMonitorGracePeriod: b.options.NodeMonitorGracePeriod,
		AuditReads:             b.options.AuditReads,
		Dir:                    filepath.Join(b.dir, "controlplane"),
		Progress:               b.options.Progress,
	})
	if err != nil {
		return err
	}

	client, err := kubernetes.NewForConfig(b.plane.Config())
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}

	return b.machines.start(ctx, client, &configuration{plane: b.plane, registry: b.Images.Address(), leaseSeconds: b.options.leaseSeconds()})
}

// makeFolder creates the folder of a bed. dir is the chosen one, or empty. The result is the folder to remove, also with an
// error.
func makeFolder(dir string) (string, error) {
	if dir == "" {
		root, err := buildcache.Root()
		if err != nil {
			return "", err
		}

		// The lock makes this bed the only one. Existing files were left by a killed one.
		dir = filepath.Join(root, "nodes")

		err = os.RemoveAll(dir)
		if err != nil {
			return dir, fmt.Errorf("remove what an earlier bed left: %w", err)
		}
	}

	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolve the folder of the bed: %w", err)
	}

	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		return dir, fmt.Errorf("use folder %s: it is not empty (%s): choose another or remove what it holds", dir, entries[0].Name())
	}

	for _, folder := range []string{logDir(dir), blobDir(dir)} {
		err = os.MkdirAll(folder, 0o755)
		if err != nil {
			return dir, fmt.Errorf("make a folder of the bed: %w", err)
		}
	}

	return dir, nil
}

func logDir(dir string) string  { return filepath.Join(dir, "logs") }
func blobDir(dir string) string { return filepath.Join(dir, "images") }

// pushPause stores the image of pod sandboxes.
func pushPause(ctx context.Context, registry *ImageRegistry, programs programs) error {
	pause, err := images.Program(filepath.Join(programs.pause, "pause"), "pause")
	if err != nil {
		return err
	}

	_, err = registry.Push(ctx, pause, pauseImage)

	return err
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

	for _, m := range b.machines.list {
		failures = append(failures, m.off())
	}

	if b.plane != nil {
		failures = append(failures, b.plane.Stop())
	}

	if b.Images != nil {
		failures = append(failures, b.Images.stop())
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
	for _, m := range b.machines.list {
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
func (b *Bed) LogDir() string { return logDir(b.dir) }

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
	return b.machines.names()[1:]
}

// Command returns a program of this machine to run in the network of a machine of a bed: Client
// or the name of a node. It sees the files and processes of this machine, and continues when the
// node is lost.
func Command(ctx context.Context, machine, program string, args ...string) *exec.Cmd {
	enter := []string{"--net=" + filepath.Join(netnsFolder, netns(machine)), "--", program}

	return exec.CommandContext(ctx, "nsenter", append(enter, args...)...)
}
