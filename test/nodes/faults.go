package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrState is wrapped by the errors of Lose for a lost node and of Return for a running one.
var ErrState = errors.New("wrong state")

// Lose stops a node like a power cut: its link is set down, and then every process on it ends at
// once. It returns when they have ended and does not wait for the cluster's reaction.
func (b *Bed) Lose(ctx context.Context, number int) error {
	m, err := b.machines.node(number)
	if err != nil {
		return err
	}

	m.power.Lock()
	defer m.power.Unlock()

	if !m.isOn() {
		return fmt.Errorf("lose %s: %w: it is lost", m.name, ErrState)
	}

	// Set the link down first: a killed process closes its connections, but a machine without power does not.
	err = plug(ctx, m.number, "down")
	if err != nil {
		return fmt.Errorf("lose %s: %w", m.name, err)
	}

	err = m.off()
	if err == nil {
		// A machine starts without its old control groups. A kubelet would need seconds for each existing one.
		err = removeCgroups(ctx, cgroupFolder, cgroup(m.name))
	}

	if err != nil {
		return fmt.Errorf("lose %s: %w", m.name, err)
	}

	return nil
}

// Return starts a node that Lose has stopped, with its old disk, and waits until it is Ready.
func (b *Bed) Return(ctx context.Context, number int) error {
	m, err := b.machines.node(number)
	if err != nil {
		return err
	}

	m.power.Lock()
	defer m.power.Unlock()

	if m.isOn() {
		return fmt.Errorf("return %s: %w: it is not lost", m.name, ErrState)
	}

	err = plug(ctx, m.number, "up")
	if err == nil {
		err = m.boot(ctx)
	}

	if err == nil {
		err = b.machines.awaitReady(ctx, m)
	}

	if err != nil {
		return fmt.Errorf("return %s: %w", m.name, err)
	}

	return nil
}

// Lost returns the numbers of the lost nodes.
func (b *Bed) Lost() []int {
	var numbers []int

	for _, m := range b.machines.list[1:] {
		if !m.isOn() {
			numbers = append(numbers, m.number)
		}
	}

	return numbers
}

// KillPod kills every process of a pod's containers without notifying the kubelet. The kubelet
// detects the end of the containers and restarts them according to the pod.
func (b *Bed) KillPod(ctx context.Context, namespace, name string) error {
	pod, err := b.machines.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("kill pod %s/%s: %w", namespace, name, err)
	}

	killed := 0

	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		_, id, _ := strings.Cut(status.ContainerID, "://")
		if id == "" || status.State.Running == nil {
			continue
		}

		processes, err := processesOf(cgroupFolder, pod.Spec.NodeName, id)
		if err != nil {
			return fmt.Errorf("kill pod %s/%s: %w", namespace, name, err)
		}

		for _, process := range processes {
			err = unix.Kill(process, unix.SIGKILL)
			if err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("kill process %d of pod %s/%s: %w", process, namespace, name, err)
			}

			killed++
		}
	}

	if killed == 0 {
		return fmt.Errorf("kill pod %s/%s: no container of it runs", namespace, name)
	}

	return nil
}
