package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// nodeLabel determines by its value whether kwok keeps a node alive. kwok also supports an
	// annotation, but the API server only reports label changes that remove an object from a
	// selection.
	nodeLabel   = "kwok.x-k8s.io/node"
	nodeManaged = "fake"
	nodeLost    = "lost"
)

// nodeNames returns the names of n nodes.
func nodeNames(n int) []string {
	names := make([]string, 0, n)
	for i := range n {
		names = append(names, fmt.Sprintf("node-%d", i+1))
	}

	return names
}

// newNode returns the i-th node, in its own zone.
func newNode(name string, i int) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name,
		Labels: map[string]string{
			nodeLabel:                  nodeManaged,
			corev1.LabelHostname:       name,
			corev1.LabelOSStable:       "linux",
			corev1.LabelArchStable:     "amd64",
			corev1.LabelTopologyRegion: "region-1",
			corev1.LabelTopologyZone:   fmt.Sprintf("zone-%d", i+1),
		},
	}}
}

// nodes are the simulated nodes of a control plane.
type nodes struct {
	components *components

	names []string
}

// Nodes returns the names of the nodes.
func (n *nodes) Nodes() []string { return slices.Clone(n.names) }

// addNodes creates the nodes and waits until pods can be scheduled to all of them.
func (n *nodes) addNodes(ctx context.Context) error {
	for i, name := range n.Nodes() {
		_, err := n.components.client.CoreV1().Nodes().Create(ctx, newNode(name, i), metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create node %s: %w", name, err)
		}
	}

	for _, name := range n.Nodes() {
		err := n.waitForNode(ctx, name)
		if err != nil {
			return err
		}
	}

	return nil
}

// StopNode stops a node: its heartbeats end, it becomes NotReady after the grace period, and its
// pods remain until they are evicted.
func (n *nodes) StopNode(ctx context.Context, name string) error {
	return n.labelNode(ctx, name, nodeLost)
}

// StartNode starts a node that StopNode has stopped and waits until it is Ready.
func (n *nodes) StartNode(ctx context.Context, name string) error {
	err := n.labelNode(ctx, name, nodeManaged)
	if err != nil {
		return err
	}

	return n.waitForNode(ctx, name)
}

func (n *nodes) labelNode(ctx context.Context, name, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{nodeLabel: value}}})
	if err != nil {
		return fmt.Errorf("label node %s: %w", name, err)
	}

	_, err = n.components.client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("label node %s: %w", name, err)
	}

	return nil
}

func (n *nodes) waitForNode(ctx context.Context, name string) error {
	return n.components.wait(ctx, "node "+name+" to be Ready", func(ctx context.Context) error {
		node, err := n.components.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}

		return unready(node)
	})
}

// unready returns why pods cannot be scheduled to a node, or nil.
func unready(node *corev1.Node) error {
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	if !ready {
		return fmt.Errorf("node %s is not Ready", node.Name)
	}

	if len(node.Spec.Taints) > 0 {
		return fmt.Errorf("node %s has taints: %v", node.Name, node.Spec.Taints)
	}

	return nil
}
