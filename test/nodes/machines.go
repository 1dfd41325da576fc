package nodes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// machines are the machines of a bed: the client and the nodes.
type machines struct {
	list   []*machine
	client kubernetes.Interface // set by start
}

// newMachines returns the client and a number of nodes, which are off.
func newMachines(nodes int, dir string, programs programs) machines {
	var s machines

	for number := range nodes + 1 {
		name := nodeName(number)
		if number == 0 {
			name = Client
		}

		s.list = append(s.list, &machine{name: name, number: number, programs: programs, dir: filepath.Join(dir, name), logs: logDir(dir)})
	}

	return s
}

func (s *machines) names() []string {
	var names []string
	for _, m := range s.list {
		names = append(names, m.name)
	}

	return names
}

// start starts all machines concurrently and waits for the nodes.
func (s *machines) start(ctx context.Context, client kubernetes.Interface, c *configuration) error {
	s.client = client
	group, ctx := errgroup.WithContext(ctx)

	for _, m := range s.list {
		err := c.write(m)
		if err != nil {
			return errors.Join(err, group.Wait())
		}

		group.Go(func() error {
			err := m.boot(ctx)
			if err != nil || m.number == 0 {
				return err
			}

			return s.awaitReady(ctx, m)
		})
	}

	return group.Wait()
}

// node returns a node by its number, from 1.
func (s *machines) node(number int) (*machine, error) {
	if number < 1 || number >= len(s.list) {
		return nil, fmt.Errorf("no node %d: there are 1 to %d", number, len(s.list)-1)
	}

	return s.list[number], nil
}

// awaitReady waits until pods can be scheduled to a node that was just started.
func (s *machines) awaitReady(ctx context.Context, m *machine) error {
	since := time.Now()

	return wait(ctx, m.name+" to be Ready", m.err, func(ctx context.Context) error {
		node, err := s.client.CoreV1().Nodes().Get(ctx, m.name, metav1.GetOptions{})
		if err != nil {
			return err
		}

		return unready(node, since)
	})
}

// unready returns why pods cannot be scheduled to a node, or nil. Heartbeats of its kubelet before
// a time do not count.
func unready(node *corev1.Node, since time.Time) error {
	for _, c := range node.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}

		if c.Status != corev1.ConditionTrue {
			return fmt.Errorf("%s is not Ready: %s", node.Name, c.Message)
		}

		// Times in conditions are in whole seconds.
		if c.LastHeartbeatTime.Time.Before(since.Truncate(time.Second)) {
			return fmt.Errorf("%s has not reported since it was switched on", node.Name)
		}
	}

	if len(node.Status.Conditions) == 0 {
		return fmt.Errorf("%s has no conditions", node.Name)
	}

	if len(node.Spec.Taints) > 0 {
		return fmt.Errorf("%s has taints: %v", node.Name, node.Spec.Taints)
	}

	return nil
}

// boot starts the machine and its programs.
func (m *machine) boot(ctx context.Context) error {
	err := m.on(ctx)
	if err != nil {
		return err
	}

	if m.number > 0 {
		err = m.bootNode(ctx)
		if err != nil {
			return err
		}
	}

	return m.start(ctx, "/run/programs/kubernetes/kube-proxy", "--config=/run/node/proxy.yaml")
}

func (m *machine) bootNode(ctx context.Context) error {
	err := addCgroup(cgroupFolder, cgroup(m.name))
	if err != nil {
		return err
	}

	err = m.start(ctx, "/run/programs/containerd/containerd", "--config=/run/node/containerd.toml")
	if err != nil {
		return err
	}

	err = wait(ctx, "containerd of "+m.name, m.err, func(ctx context.Context) error {
		var dialer net.Dialer

		connection, err := dialer.DialContext(ctx, "unix", filepath.Join(m.root(), containerdSocket))
		if err != nil {
			return err
		}

		return connection.Close()
	})
	if err != nil {
		return err
	}

	return m.start(ctx, "/run/programs/kubernetes/kubelet",
		"--config=/run/node/kubelet.yaml",
		"--kubeconfig=/run/node/kubelet.kubeconfig",
		"--hostname-override="+m.name,
		"--node-ip="+address(m.number),
		"--node-labels="+fmt.Sprintf("topology.kubernetes.io/region=region-1,topology.kubernetes.io/zone=zone-%d", m.number),
	)
}
