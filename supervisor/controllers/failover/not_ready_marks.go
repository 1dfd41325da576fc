package failover

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

const (
	// leaseStale is the age at which a node's Lease counts as stale: one and a half times the
	// default renewal interval of ten seconds.
	leaseStale = 15 * time.Second
	// maxMarks is how often an unreachable replica is marked while its kubelet is alive and resets
	// the condition each time. After that, the kubelet's state counts.
	maxMarks = 3
	// markInterval is the minimum time between two marks of a replica. The API shows the previous
	// mark by then.
	markInterval = 2 * time.Second
	// unmarkAfter is how long a marked replica must answer before the controller removes the mark
	// itself. A kubelet compares its state with the API every ten seconds.
	unmarkAfter = 25 * time.Second
)

// notReadyMarks decides on the marks of unreachable replicas.
type notReadyMarks struct {
	*decider

	// toDelete holds the UIDs of the pods that are, or should be, deleted.
	toDelete map[types.UID]bool
}

// mark decides on marks for unreachable replicas of catalogs with other replicas that answer.
func (m *notReadyMarks) mark() {
	cutOff := m.isCutOff()
	var candidates []candidate
	for _, c := range m.Catalogs {
		others := slices.ContainsFunc(c.Replicas, func(r Replica) bool { return r.answers() && !m.toDelete[r.UID] })
		for _, r := range c.Replicas {
			if !r.unreachable() || m.toDelete[r.UID] || !others || !m.canMark(r) {
				continue
			}
			if cutOff && !m.Nodes[r.Node].stale(m.Now) {
				m.decision.Held[CutOff]++
				m.requeueAfter(m.untilStale(m.Nodes[r.Node]))
				continue
			}
			action := Action{Verb: MarkNotReady, Reason: ReplicaUnreachable, Catalog: c.Key, Replica: r, Message: m.message(r)}
			if !m.pausing(action) {
				candidates = append(candidates, candidate{Action: action, refusals: m.Attempts[action.target()].Refusals})
			}
		}
	}
	m.decision.Budget.sort(candidates)
	for _, c := range candidates {
		m.addLimited(c.Action, &m.decision.Budget.Marks, m.Limits, RateLimited)
	}
}

// untilStale returns when to check a node's Lease again.
func (m *notReadyMarks) untilStale(n Node) time.Duration {
	if n.Renewed.IsZero() {
		return leaseStale / 3
	}
	return max(time.Second, leaseStale-m.Now.Sub(n.Renewed))
}

// canMark reports whether a mark can still have an effect. It cannot if a live kubelet has reset
// the condition maxMarks times.
func (m *notReadyMarks) canMark(r Replica) bool {
	mark, marked := m.Marks[r.UID]
	if !marked || !mark.UnreachableSince.Equal(r.Since) {
		return true
	}
	if wait := markInterval - m.Now.Sub(mark.Last); wait > 0 {
		m.requeueAfter(wait)
		return false
	}
	if mark.Count < maxMarks || m.Nodes[r.Node].stale(m.Now) {
		return true
	}
	if node := m.Nodes[r.Node]; !node.Renewed.IsZero() {
		m.requeueAfter(m.untilStale(node))
	}
	return false
}

// isCutOff reports whether this process itself may be disconnected. That is assumed if all answering
// replicas run on one node, which may be its own, and ready replicas on several other nodes are
// unreachable.
func (m *notReadyMarks) isCutOff() bool {
	answering, unreachable := map[string]bool{}, map[string]bool{}
	for _, c := range m.Catalogs {
		for _, r := range c.Replicas {
			switch {
			case r.Health == replicas.Serving || r.Health == replicas.NotServing:
				answering[r.Node] = true
			case r.unreachable() && m.Nodes[r.Node].Ready == corev1.ConditionTrue:
				unreachable[r.Node] = true
			}
		}
	}
	maps.DeleteFunc(unreachable, func(node string, _ bool) bool { return answering[node] })
	return len(answering) <= 1 && len(unreachable) > 1
}

// message returns the message for a mark.
func (m *notReadyMarks) message(r Replica) string {
	text := fmt.Sprintf("the replica on node %s does not answer while another one does", r.Node)
	if renewed := m.Nodes[r.Node].Renewed; !renewed.IsZero() {
		text += fmt.Sprintf("; the last known renewal of the node's Lease was %s ago", m.Now.Sub(renewed).Truncate(time.Second))
	}
	return text
}

// unmark decides to remove marks from replicas that answer again if their kubelets have not done
// so.
func (m *notReadyMarks) unmark() {
	for _, c := range m.Catalogs {
		for _, r := range c.Replicas {
			if r.Marked.IsZero() || r.Terminating || m.toDelete[r.UID] {
				continue
			}
			if r.Health != replicas.Serving || m.Nodes[r.Node].Ready != corev1.ConditionTrue {
				continue
			}
			if !m.overdue(r.Since, unmarkAfter) || !m.overdue(r.Marked, unmarkAfter) {
				continue
			}
			action := Action{
				Verb: MarkReady, Reason: ReplicaAnswers, Catalog: c.Key, Replica: r,
				Message: fmt.Sprintf("the replica on node %s answers again", r.Node),
			}
			if m.pausing(action) {
				continue
			}
			m.addLimited(action, &m.decision.Budget.Marks, m.Limits, RateLimited)
		}
	}
}
