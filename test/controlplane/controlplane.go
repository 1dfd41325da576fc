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
	*files
	*components
	*nodes

	folder folder
	config *rest.Config
	http   *http.Client
	client kubernetes.Interface
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

	files := &files{layout: layout{
		dir: folder.path, binDir: binDir, gracePeriod: o.NodeMonitorGracePeriod, address: o.Address,
		auditPolicy: o.auditPolicy(), etcdQuota: o.EtcdQuota, largeObjects: o.LargeObjects, withoutControllers: o.WithoutControllers,
	}}
	components := &components{files: files, running: map[Component]*member{}}
	c := &ControlPlane{files: files, components: components, nodes: &nodes{components: components, names: nodeNames(o.Nodes)}, folder: folder}

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

	c.components.client = c.client

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

// Config returns the access of a cluster administrator, without a rate limit. Each call returns a copy.
func (c *ControlPlane) Config() *rest.Config { return rest.CopyConfig(c.config) }
