package failover

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// weakness returns what a set of pods lacks: it must have the wanted number of pods, each ready, on
// as many nodes, and no others. It returns an empty text if nothing is lacking.
func weakness(pods []corev1.Pod, wanted int) string {
	var faults []string
	nodes := map[string]bool{}
	for i := range pods {
		p := &pods[i]
		nodes[p.Spec.NodeName] = true
		switch {
		case p.DeletionTimestamp != nil:
			faults = append(faults, fmt.Sprintf("pod %s on %s is Terminating", p.Name, p.Spec.NodeName))
		case !ready(p):
			faults = append(faults, fmt.Sprintf("pod %s on %s is %s and not ready", p.Name, p.Spec.NodeName, p.Status.Phase))
		}
	}
	if len(pods) != wanted {
		faults = append(faults, fmt.Sprintf("there are %d pods instead of %d", len(pods), wanted))
	}
	if len(faults) == 0 && len(nodes) < wanted {
		faults = append(faults, fmt.Sprintf("%d pods are on %d nodes", wanted, len(nodes)))
	}
	slices.Sort(faults)
	return strings.Join(faults, "; ")
}

func ready(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// nodeReady reports whether the control plane considers a node ready.
func nodeReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
