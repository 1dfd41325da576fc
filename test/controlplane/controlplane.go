package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/chandlery/chandlery/test/ports"
)

// ControlPlane is a running control plane. Its methods are safe for concurrent use.
type ControlPlane struct {
	layout  layout
	nodes   []string
	folder  folder
	config  *rest.Config
	http    *http.Client
	client  kubernetes.Interface
	mu      sync.Mutex
	running map[Component]*member
}

// Start builds missing programs, starts a control plane and returns when it serves and its nodes
// are Ready. It keeps running after ctx ends, until Stop or the end of this process. A component
// that fails is a *ComponentError.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	o = o.withDefaults()

	binDir, err := Build(ctx, o.Progress)
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("the control plane did not start within %s", startLimit))
	defer cancel()

	for range startTries - 1 {
		c, err := tryStart(ctx, o, binDir)
		if !portTaken(err) {
			return c, err
		}
	}

	return tryStart(ctx, o, binDir)
}

func tryStart(ctx context.Context, o Options, binDir string) (*ControlPlane, error) {
	folder, err := newFolder(o.Dir)
	if err != nil {
		return nil, err
	}

	c := &ControlPlane{
		layout: layout{
			dir: folder.path, binDir: binDir, gracePeriod: o.NodeMonitorGracePeriod, address: o.Address,
			auditPolicy: o.auditPolicy(), etcdQuota: o.EtcdQuota, largeObjects: o.LargeObjects, withoutControllers: o.WithoutControllers,
		},
		nodes:   nodeNames(o.Nodes),
		folder:  folder,
		running: map[Component]*member{},
	}

	err = c.start(ctx)
	if err == nil {
		return c, nil
	}

	// Report the original error and not a failed stop.
	_ = c.Stop()

	if portTaken(err) {
		// The folder was empty before and must be empty for the next attempt.
		err = errors.Join(err, os.RemoveAll(folder.path))
	}

	return nil, fmt.Errorf("start the control plane: %w", err)
}

// portTaken reports whether a component failed because another process has taken its port.
func portTaken(err error) bool {
	var failed *ComponentError

	return errors.As(err, &failed) && strings.Contains(failed.Tail, "address already in use")
}

func (c *ControlPlane) start(ctx context.Context) error {
	err := c.prepare(ctx)
	if err != nil {
		return err
	}

	for _, component := range c.layout.components() {
		err = c.launch(ctx, component)
		if err != nil {
			return err
		}

		// The API server requires etcd, and the others wait only a few seconds for it. They have no
		// order among each other.
		if component == Etcd || component == KubeAPIServer {
			err = c.waitForComponent(ctx, component)
		}

		if err != nil {
			return err
		}
	}

	err = c.waitForComponent(ctx, KubeControllerManager)
	if err != nil {
		return err
	}

	return c.addNodes(ctx)
}

// prepare reserves the ports and writes the files of the components.
func (c *ControlPlane) prepare(ctx context.Context) error {
	for _, dir := range []string{filepath.Dir(c.layout.pki("x")), c.layout.logDir()} {
		err := os.Mkdir(dir, 0o700)
		if err != nil {
			return fmt.Errorf("make a folder: %w", err)
		}
	}

	var err error

	for _, p := range []**ports.Port{&c.layout.etcd, &c.layout.apiServer} {
		*p, err = ports.Reserve(ctx)
		if err != nil {
			return err
		}
	}

	err = writePKI(filepath.Dir(c.layout.pki("x")), c.layout.listen())
	if err != nil {
		return err
	}

	err = c.writeKubeconfigs()
	if err != nil {
		return err
	}

	if c.layout.auditPolicy != "" {
		err = os.WriteFile(c.layout.auditFile(), []byte(c.layout.auditPolicy), 0o600)
		if err != nil {
			return fmt.Errorf("write the audit policy: %w", err)
		}
	}

	return c.writeStages()
}

// auditPolicy returns a policy with one line for each selected request when it is answered or its
// connection ends; empty for no log.
func (o Options) auditPolicy() string {
	const head = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
`
	switch {
	case o.AuditReads:
		return head + "- {level: Metadata, userGroups: [\"system:serviceaccounts\"]}\n- {level: None}\n"
	case o.AuditWrites:
		return head + "- {level: None, verbs: [get, list, watch]}\n- {level: Metadata}\n"
	}
	return ""
}

// AuditLog returns the path of the audit log of a control plane with AuditWrites or AuditReads: a
// JSON object of audit.k8s.io/v1 on each line.
func (c *ControlPlane) AuditLog() string { return c.layout.auditLog() }

func (c *ControlPlane) writeKubeconfigs() error {
	pki := filepath.Dir(c.layout.pki("x"))

	for _, user := range []string{string(KubeControllerManager), string(KubeScheduler), string(Kwok), "admin"} {
		config, err := clientConfig(pki, user, c.layout.server())
		if err != nil {
			return err
		}

		err = writeKubeconfig(c.layout.kubeconfig(user), user, config)
		if err != nil {
			return err
		}

		c.config = config
	}

	client, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}

	c.http = client

	c.client, err = kubernetes.NewForConfigAndClient(c.config, client)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}

	return nil
}

// writeStages joins the stages beside the binaries into the single file that kwok reads.
func (c *ControlPlane) writeStages() error {
	var documents []string

	for _, name := range stages {
		data, err := os.ReadFile(filepath.Join(c.layout.binDir, stagesFolder, filepath.Base(name)))
		if err != nil {
			return fmt.Errorf("read a stage of kwok: %w", err)
		}

		documents = append(documents, string(data))
	}

	err := os.WriteFile(c.layout.stages(), []byte(strings.Join(documents, "\n---\n")), 0o600)
	if err != nil {
		return fmt.Errorf("write the stages of kwok: %w", err)
	}

	return nil
}

// Stop stops every component, in reverse order of their dependencies, and removes the temporary
// folder. A component that had ended before is a *ComponentError in the result. A second call does
// nothing.
func (c *ControlPlane) Stop() error {
	clients := []Component{Kwok, KubeScheduler, KubeControllerManager}
	stopped := make([]error, len(clients))

	var wait sync.WaitGroup

	for i, component := range clients {
		wait.Go(func() { stopped[i] = c.StopComponent(component) })
	}

	wait.Wait()

	failures := slices.Concat(stopped, []error{c.StopComponent(KubeAPIServer), c.StopComponent(Etcd)})

	c.mu.Lock()
	defer c.mu.Unlock()

	if c.http != nil {
		c.http.CloseIdleConnections()
	}

	for _, p := range []*ports.Port{c.layout.etcd, c.layout.apiServer} {
		failures = append(failures, p.Release())
	}

	failures = append(failures, c.folder.remove())
	c.folder = folder{}

	err := errors.Join(failures...)
	if err != nil {
		return fmt.Errorf("stop the control plane: %w", err)
	}

	return nil
}

// SaveLogs creates dir and copies the logs into it.
func (c *ControlPlane) SaveLogs(dir string) error {
	err := os.CopyFS(dir, os.DirFS(c.LogDir()))
	if err != nil {
		return fmt.Errorf("save the logs of the control plane: %w", err)
	}

	return nil
}

// Config returns the access of a cluster administrator, without a rate limit. Each call returns a copy.
func (c *ControlPlane) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Kubeconfig returns the path of a file with the same access.
func (c *ControlPlane) Kubeconfig() string { return c.layout.kubeconfig("admin") }

// BinDir returns the directory of the programs, kubectl among them.
func (c *ControlPlane) BinDir() string { return c.layout.binDir }

// Kubectl returns the path of a kubectl of the same version.
func (c *ControlPlane) Kubectl() string { return filepath.Join(c.layout.binDir, "kubectl") }

// LogDir returns the directory of the logs: one file for each component, named after it.
func (c *ControlPlane) LogDir() string { return c.layout.logDir() }

// Nodes returns the names of the nodes.
func (c *ControlPlane) Nodes() []string { return slices.Clone(c.nodes) }
