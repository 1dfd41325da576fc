package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// waitPoll is the interval between checks of a condition.
	waitPoll = 50 * time.Millisecond
	// checkLimit bounds one check, so a server that does not answer cannot use up the whole wait.
	checkLimit = 5 * time.Second
	// stopGrace is how long a component may take to stop before it is killed.
	stopGrace = 20 * time.Second
)

// ErrRunning is wrapped by the error of StartComponent for a component that runs.
var ErrRunning = errors.New("component is running")

// components are the processes of a control plane.
type components struct {
	*files

	client  kubernetes.Interface
	mu      sync.Mutex
	running map[Component]*member
}

// StopComponent stops a component and waits until it has ended. It does nothing for one that does
// not run. A component that had ended before is a *ComponentError.
func (c *components) StopComponent(component Component) error {
	return c.end(component, func(m *member) error { return m.stop(stopGrace) })
}

// KillComponent kills a component.
func (c *components) KillComponent(component Component) error {
	return c.end(component, (*member).Kill)
}

// StartComponent starts a component that was stopped or killed, with the same address and data, and
// waits until it serves.
func (c *components) StartComponent(ctx context.Context, component Component) error {
	err := c.launch(ctx, component)
	if err != nil {
		return err
	}

	return c.waitForComponent(ctx, component)
}

// RestartComponent stops a component and starts it again.
func (c *components) RestartComponent(ctx context.Context, component Component) error {
	err := c.StopComponent(component)
	if err != nil {
		return err
	}

	return c.StartComponent(ctx, component)
}

func (c *components) launch(ctx context.Context, component Component) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	if _, ok := c.running[component]; ok {
		return fmt.Errorf("start %s: %w: stop it first", component, ErrRunning)
	}

	p, err := c.layout.command(component).start(ctx)
	if err != nil {
		return err
	}

	c.running[component] = p

	return nil
}

func (c *components) end(component Component, how func(*member) error) error {
	c.mu.Lock()
	p, ok := c.running[component]
	delete(c.running, component)
	c.mu.Unlock()

	if !ok {
		return nil
	}

	if err := p.ended(); err != nil {
		return err
	}

	return how(p)
}

// waitForComponent waits until a started component works.
func (c *components) waitForComponent(ctx context.Context, component Component) error {
	checks := map[Component]func(context.Context) error{
		Etcd: func(ctx context.Context) error { return dial(ctx, c.layout.etcd.Address()) },
		KubeAPIServer: func(ctx context.Context) error {
			return c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		},
		// Without this service account, no pod can be created in the namespace.
		KubeControllerManager: func(ctx context.Context) error {
			_, err := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})

			return err
		},
	}

	check, ok := checks[component]
	if !ok {
		check = func(context.Context) error { return nil }
	}

	return c.wait(ctx, string(component)+" to be ready", check)
}

func dial(ctx context.Context, address string) error {
	var dialer net.Dialer

	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}

	return connection.Close()
}

// wait calls check repeatedly until it returns nil, ctx ends or a component has ended.
func (c *components) wait(ctx context.Context, what string, check func(context.Context) error) error {
	ticker := time.NewTicker(waitPoll)
	defer ticker.Stop()

	for {
		err := c.Err()
		if err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}

		one, cancel := context.WithTimeout(ctx, checkLimit)
		err = check(one)

		cancel()

		if err == nil {
			return nil
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; last seen: %w", what, context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// Err returns a *ComponentError for each component that should run and has ended.
func (c *components) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()

	var failures []error

	for _, m := range c.running {
		failures = append(failures, m.ended())
	}

	return errors.Join(failures...)
}
