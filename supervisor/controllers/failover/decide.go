package failover

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/replicas"
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
	// takeBack is how long a marked replica must answer before the controller removes the mark
	// itself. A kubelet compares its state with the API every ten seconds.
	takeBack = 25 * time.Second
	// settle is how long a node must be not ready before replicas on it that still answer are
	// deleted. A restarted kubelet reports not ready for some seconds.
	settle = 10 * time.Second
	// disrupted is how long an announced deletion of a pod may take before the controller deletes
	// the pod itself.
	disrupted = 10 * time.Second
	// unhealthyZone is the fraction of nodes, and fewNodes the number of nodes, that may be not
	// ready before a zone counts as disrupted. Both match the node lifecycle controller.
	unhealthyZone = 0.55
	fewNodes      = 2
	// slowdown is the factor by which deletions are slower in a disrupted zone.
	slowdown = 10
	// asking is how long the first probes of a replica take.
	asking = 5 * time.Second
	// replacing is how long the replacement of a deleted pod may take to appear.
	replacing = 10 * time.Second
	// firstPause and longestPause limit the pause before an action is repeated that failed or had
	// no effect.
	firstPause   = 2 * time.Second
	longestPause = 5 * time.Minute
)

// decider computes a decision.
type decider struct {
	Observation

	decision  Decision
	condemned map[string]bool // UIDs of pods that are, or should be, deleted
}

// Decide returns the actions for an observation. It is deterministic. It does not repeat actions
// that have been executed.
func Decide(o Observation) Decision {
	d := decider{Observation: o, condemned: map[string]bool{}}
	d.decision = Decision{Held: map[Hold]int{}, Budget: o.Budget}
	d.decision.Budget.Marks.fill(o.Now, o.Limits)
	d.decision.Budget.Deletions.fill(o.Now, o.Limits)
	d.decision.Budget.Slow.fill(o.Now, o.Limits.slowed())
	candidates := d.candidates()
	if o.Standing == Leading {
		d.delete(candidates)
	}
	if o.Standing != Waiting {
		d.mark()
	}
	if o.Standing == Leading {
		d.takeBack()
	}
	return d.decision
}

// candidate is a deletion that can be decided on.
type candidate struct {
	Action

	refusals, left int
}

// candidates returns the deletions of pods that will not serve again.
func (d *decider) candidates() []candidate {
	var found []candidate
	for _, c := range d.Catalogs {
		found = append(found, d.candidatesOf(c)...)
	}
	return found
}

// delete decides on deletions. Pods of catalogs with the fewest remaining replicas come first. Pods
// whose deletion failed before come last.
func (d *decider) delete(candidates []candidate) {
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.refusals, b.refusals), cmp.Compare(a.left, b.left), cmp.Compare(a.Replica.UID, b.Replica.UID))
	})
	zones := zoneStates(d.Nodes)
	for _, c := range candidates {
		switch {
		case c.Reason == NodeNotReady && zones[d.Nodes[c.Replica.Node].Zone]:
			d.spend(c.Action, &d.decision.Budget.Slow, d.Limits.slowed(), ZoneDisrupted)
		default:
			d.spend(c.Action, &d.decision.Budget.Deletions, d.Limits, RateLimited)
		}
	}
}

// candidatesOf returns the deletions that a catalog needs and can tolerate.
func (d *decider) candidatesOf(c Catalog) []candidate {
	left := 0
	fatal := map[types.UID]Action{}
	for _, r := range c.Replicas {
		if r.answers() {
			left++
		}
		if reason, message := d.fatal(r); reason != "" {
			fatal[r.UID] = Action{Verb: Delete, Reason: reason, Catalog: c.Key, Replica: r, Message: message}
		}
	}
	kept := d.kept(c, fatal)
	somewhere := slices.ContainsFunc(slices.Collect(maps.Values(d.Nodes)), func(n Node) bool { return n.Ready == corev1.ConditionTrue })
	var found []candidate
	for _, r := range c.Replicas {
		action, doomed := fatal[r.UID]
		if !doomed {
			continue
		}
		d.condemned[string(r.UID)] = !kept[r.UID]
		switch {
		case !somewhere:
			d.decision.Held[NoNodeReady]++
		case d.pausing(action):
		case kept[r.UID]:
			d.decision.Held[LastAnswering]++
		default:
			found = append(found, candidate{Action: action, left: left, refusals: d.Attempts[action.target()].Refusals})
		}
	}
	return found
}

// kept returns the replicas that would be deleted but must stay because they still answer. If no
// healthy replica answers, one of them is deleted, so that another pod replaces it. The next one
// follows when the replacement answers. The last one is deleted only if no other pod is starting
// and it is not ready. Clients of the Service cannot reach it then.
func (d *decider) kept(c Catalog, fatal map[types.UID]Action) map[types.UID]bool {
	var useful []Replica
	coming := d.replaced(c.Key)
	for _, r := range c.Replicas {
		_, doomed := fatal[r.UID]
		switch {
		case !doomed && r.answers() && d.Nodes[r.Node].Ready == corev1.ConditionTrue:
			return nil
		case doomed && r.useful():
			useful = append(useful, r)
		case !r.Terminating:
			coming = true
		}
	}
	slices.SortStableFunc(useful, func(a, b Replica) int { return cmp.Compare(a.worth(), b.worth()) })
	kept := map[types.UID]bool{}
	for i, r := range useful {
		first := i == 0 && (len(useful) > 1 || !r.Ready)
		kept[r.UID] = coming || !first
	}
	return kept
}

// replaced reports whether a replica of a catalog was deleted so recently that its replacement may
// not be visible yet.
func (d *decider) replaced(catalog types.NamespacedName) bool {
	recent := false
	for target, attempt := range d.Attempts {
		if target.Verb == Delete && attempt.Catalog == catalog && attempt.Refusals == 0 && !d.overdue(attempt.Last, replacing) {
			recent = true
		}
	}
	return recent
}

// pausing reports whether an action is in back-off.
func (d *decider) pausing(a Action) bool {
	attempt, tried := d.Attempts[a.target()]
	if !tried || d.overdue(attempt.Last, attempt.pause()) {
		return false
	}
	d.decision.Held[Backoff]++
	return true
}

// fatal returns why a pod will not serve again; empty if it may.
func (d *decider) fatal(r Replica) (Reason, string) {
	if reason, message := d.stranded(r); reason != "" {
		return reason, message
	}
	switch {
	case r.Terminating:
		// On a healthy node, a terminating pod has its grace period.
		return "", ""
	case r.Phase == corev1.PodFailed || r.Phase == corev1.PodUnknown:
		return Failed, fmt.Sprintf("the pod's phase is %s", r.Phase)
	case !r.Disrupted.IsZero() && d.overdue(r.Disrupted, disrupted):
		return Disrupted, "the pod was to be deleted (its condition DisruptionTarget is True) and was not"
	default:
		return "", ""
	}
}

// stranded returns the problem of a pod's node; empty if the node is healthy or may soon be.
func (d *decider) stranded(r Replica) (Reason, string) {
	node, known := d.Nodes[r.Node]
	switch {
	case !known:
		return "", ""
	case node.Gone:
		return NodeGone, fmt.Sprintf("node %s does not exist any more", r.Node)
	case node.Ready == corev1.ConditionTrue:
		return "", ""
	case node.Ready == corev1.ConditionFalse && r.Health == replicas.Serving && !d.overdue(node.Since, settle):
		return "", ""
	case r.Health == replicas.Unknown && r.Phase == corev1.PodRunning && !d.overdue(r.Since, asking):
		// The replica may answer. Probing has only just begun.
		return "", ""
	default:
		return NodeNotReady, fmt.Sprintf("node %s is not ready (its condition Ready is %s)", r.Node, node.Ready)
	}
}

// overdue reports whether the duration after since has passed. Otherwise, it schedules another
// decision for that time.
func (d *decider) overdue(since time.Time, after time.Duration) bool {
	wait := after - d.Now.Sub(since)
	if wait > 0 {
		d.wake(wait)
	}
	return wait <= 0
}

// zoneStates reports for each zone whether so many of its nodes are not ready that the cause may
// not be the nodes themselves. A zone without any ready node does not count, because caution has no
// benefit there.
func zoneStates(nodes map[string]Node) map[string]bool {
	total, away := map[string]int{}, map[string]int{}
	for _, n := range nodes {
		if n.Gone {
			continue
		}
		total[n.Zone]++
		if n.Ready != corev1.ConditionTrue {
			away[n.Zone]++
		}
	}
	states := map[string]bool{}
	for zone, n := range away {
		states[zone] = n > fewNodes && n < total[zone] && float64(n)/float64(total[zone]) >= unhealthyZone
	}
	return states
}

// mark decides on marks for unreachable replicas of catalogs with other replicas that answer.
func (d *decider) mark() {
	blind := d.blind()
	for _, c := range d.Catalogs {
		others := slices.ContainsFunc(c.Replicas, func(r Replica) bool { return r.answers() && !d.condemned[string(r.UID)] })
		for _, r := range c.Replicas {
			if !r.silent() || d.condemned[string(r.UID)] || !others || !d.unheard(r) {
				continue
			}
			if blind && !d.Nodes[r.Node].stale(d.Now) {
				d.decision.Held[CutOff]++
				d.wake(d.untilStale(d.Nodes[r.Node]))
				continue
			}
			action := Action{Verb: MarkNotReady, Reason: Silent, Catalog: c.Key, Replica: r, Message: d.silence(r)}
			if d.pausing(action) {
				continue
			}
			d.spend(action, &d.decision.Budget.Marks, d.Limits, RateLimited)
		}
	}
}

// untilStale returns when to check a node's Lease again.
func (d *decider) untilStale(n Node) time.Duration {
	if n.Renewed.IsZero() {
		return leaseStale / 3
	}
	return max(time.Second, leaseStale-d.Now.Sub(n.Renewed))
}

// unheard reports whether a mark can still have an effect. It cannot if a live kubelet has reset
// the condition maxMarks times.
func (d *decider) unheard(r Replica) bool {
	mark, marked := d.Marks[r.UID]
	if !marked || !mark.Silence.Equal(r.Since) {
		return true
	}
	if wait := markInterval - d.Now.Sub(mark.Last); wait > 0 {
		d.wake(wait)
		return false
	}
	if mark.Count < maxMarks || d.Nodes[r.Node].stale(d.Now) {
		return true
	}
	if node := d.Nodes[r.Node]; !node.Renewed.IsZero() {
		d.wake(d.untilStale(node))
	}
	return false
}

// blind reports whether this process itself may be disconnected. That is assumed if all answering
// replicas run on one node, which may be its own, and ready replicas on several other nodes are
// unreachable.
func (d *decider) blind() bool {
	answering, silent := map[string]bool{}, map[string]bool{}
	for _, c := range d.Catalogs {
		for _, r := range c.Replicas {
			switch {
			case r.Health == replicas.Serving || r.Health == replicas.NotServing:
				answering[r.Node] = true
			case r.silent() && d.Nodes[r.Node].Ready == corev1.ConditionTrue:
				silent[r.Node] = true
			}
		}
	}
	maps.DeleteFunc(silent, func(node string, _ bool) bool { return answering[node] })
	return len(answering) <= 1 && len(silent) > 1
}

// silence returns the message for a mark.
func (d *decider) silence(r Replica) string {
	text := fmt.Sprintf("the replica on node %s does not answer while another one does", r.Node)
	if renewed := d.Nodes[r.Node].Renewed; !renewed.IsZero() {
		text += fmt.Sprintf("; the node's Lease was last seen to be renewed %s ago", d.Now.Sub(renewed).Truncate(time.Second))
	}
	return text
}

// takeBack decides to remove marks from replicas that answer again if their kubelets have not done
// so.
func (d *decider) takeBack() {
	for _, c := range d.Catalogs {
		for _, r := range c.Replicas {
			if r.Marked.IsZero() || r.Terminating || d.condemned[string(r.UID)] {
				continue
			}
			if r.Health != replicas.Serving || d.Nodes[r.Node].Ready != corev1.ConditionTrue {
				continue
			}
			if !d.overdue(r.Since, takeBack) || !d.overdue(r.Marked, takeBack) {
				continue
			}
			action := Action{Verb: MarkReady, Reason: Back, Catalog: c.Key, Replica: r, Message: fmt.Sprintf("the replica on node %s answers again", r.Node)}
			if d.pausing(action) {
				continue
			}
			d.spend(action, &d.decision.Budget.Marks, d.Limits, RateLimited)
		}
	}
}

// spend adds an action to the decision if a token is left.
func (d *decider) spend(action Action, from *Bucket, limits Limits, hold Hold) {
	if wait, ok := from.take(limits); !ok {
		d.decision.Held[hold]++
		d.wake(wait)
		return
	}
	d.decision.Actions = append(d.decision.Actions, action)
}

// wake schedules another decision.
func (d *decider) wake(after time.Duration) {
	if d.decision.Wake == 0 || after < d.decision.Wake {
		d.decision.Wake = after
	}
}
