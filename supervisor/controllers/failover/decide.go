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
	// leaseStale is the age at which a node's Lease speaks against its kubelet:
	// one and a half of the ten seconds in which it is renewed by default.
	leaseStale = 15 * time.Second
	// maxMarks is how often a silent replica is marked whose kubelet, which is
	// alive, says each time that it is ready: then it is right.
	maxMarks = 3
	// markInterval is the least time between two marks of a replica. The API
	// shows the last one by then.
	markInterval = 2 * time.Second
	// takeBack is how long a marked replica answers before we take the mark
	// back ourselves: a kubelet compares what it knows with the API every ten
	// seconds.
	takeBack = 25 * time.Second
	// settle is how long a node says that it is not ready before the replicas on
	// it that answer are deleted: a kubelet that was restarted says so for some
	// seconds.
	settle = 10 * time.Second
	// disrupted is how long somebody who has announced the deletion of a pod has
	// time for it.
	disrupted = 10 * time.Second
	// unhealthyZone is the part of the nodes of a zone, and fewNodes the number,
	// that may be not ready before the zone is taken for disrupted. Both are
	// those of the node controller.
	unhealthyZone = 0.55
	fewNodes      = 2
	// slowdown is how many times slower pods are deleted in such a zone.
	slowdown = 10
	// asking is how long it takes until a replica that is asked is known to answer
	// or not.
	asking = 5 * time.Second
	// replacing is the time in which the pod appears that takes the place of one
	// that was deleted.
	replacing = 10 * time.Second
	// firstPause and longestPause bound the time until what the API refused, or
	// what had no effect, is tried again.
	firstPause   = 2 * time.Second
	longestPause = 5 * time.Minute
)

// decider gathers a decision.
type decider struct {
	Observation

	decision  Decision
	condemned map[string]bool // UIDs of pods that are, or ought to be, deleted
}

// Decide says what to do. The same observation always gives the same decision,
// and what was done is not decided again.
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

// candidate is a deletion that may be decided on.
type candidate struct {
	Action

	refusals, left int
}

// candidates are the deletions of pods that will not serve again.
func (d *decider) candidates() []candidate {
	var found []candidate
	for _, c := range d.Catalogs {
		found = append(found, d.candidatesOf(c)...)
	}
	return found
}

// delete deletes pods. Those go first whose catalog has the fewest replicas left,
// and last those whose deletion was refused before.
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

// candidatesOf are the deletions that a catalog needs and can bear.
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

// kept are the replicas of a catalog that would be deleted but still answer, and
// have to go on until others do. While nothing that answers is to stay, one of
// them goes, so that another pod takes its place, and the next when that one
// answers. The last one goes only when it is of no use to the clients of the
// Service any more, which leads nobody to a pod that is not ready, and when no
// other pod is on its way.
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

// replaced says whether a replica of a catalog was deleted so recently that what
// takes its place may not be seen yet.
func (d *decider) replaced(catalog types.NamespacedName) bool {
	recent := false
	for target, attempt := range d.Attempts {
		if target.Verb == Delete && attempt.Catalog == catalog && attempt.Refusals == 0 && !d.overdue(attempt.Last, replacing) {
			recent = true
		}
	}
	return recent
}

// pausing says whether an action was tried in vain and is not yet tried again.
func (d *decider) pausing(a Action) bool {
	attempt, tried := d.Attempts[a.target()]
	if !tried || d.overdue(attempt.Last, attempt.pause()) {
		return false
	}
	d.decision.Held[Backoff]++
	return true
}

// fatal says why a pod will not serve again; empty for one that may.
func (d *decider) fatal(r Replica) (Reason, string) {
	if reason, message := d.stranded(r); reason != "" {
		return reason, message
	}
	switch {
	case r.Terminating:
		// Whoever deletes it on a node that is well gives it time to end.
		return "", ""
	case r.Phase == corev1.PodFailed || r.Phase == corev1.PodUnknown:
		return Failed, fmt.Sprintf("the pod's phase is %s", r.Phase)
	case !r.Disrupted.IsZero() && d.overdue(r.Disrupted, disrupted):
		return Disrupted, "the pod was to be deleted (its condition DisruptionTarget is True) and was not"
	default:
		return "", ""
	}
}

// stranded says what is wrong with a pod's node; empty when that is well, or may
// soon be.
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
		// It may answer; we have only just begun to ask.
		return "", ""
	default:
		return NodeNotReady, fmt.Sprintf("node %s is not ready (its condition Ready is %s)", r.Node, node.Ready)
	}
}

// overdue says whether a time has passed, and else makes Decide be asked when it
// has.
func (d *decider) overdue(since time.Time, after time.Duration) bool {
	wait := after - d.Now.Sub(since)
	if wait > 0 {
		d.wake(wait)
	}
	return wait <= 0
}

// zoneStates says of each zone whether so many of its nodes are not ready that
// this may be trouble of another kind. A zone that is lost as a whole is not
// meant: nothing of it is left to be careful with.
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

// mark marks replicas that are silent while others of their catalog answer.
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

// untilStale is when to look at a node's Lease again.
func (d *decider) untilStale(n Node) time.Duration {
	if n.Renewed.IsZero() {
		return leaseStale / 3
	}
	return max(time.Second, leaseStale-d.Now.Sub(n.Renewed))
}

// unheard says whether a mark may still tell the kubelet something: one that is
// alive and says each time that the replica is ready is right.
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

// blind says whether it may be us that are cut off: everything that answers runs
// on one node, which may be ours, and the replicas of two nodes or more are
// silent that the API calls ready.
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

// silence words why a replica is marked.
func (d *decider) silence(r Replica) string {
	text := fmt.Sprintf("the replica on node %s does not answer while another one does", r.Node)
	if renewed := d.Nodes[r.Node].Renewed; !renewed.IsZero() {
		text += fmt.Sprintf("; the node's Lease was last seen to be renewed %s ago", d.Now.Sub(renewed).Truncate(time.Second))
	}
	return text
}

// takeBack ends marks on replicas that answer again and whose kubelet has not
// said so.
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

// spend decides on an action if there is a token for it.
func (d *decider) spend(action Action, from *Bucket, limits Limits, hold Hold) {
	if wait, ok := from.take(limits); !ok {
		d.decision.Held[hold]++
		d.wake(wait)
		return
	}
	d.decision.Actions = append(d.decision.Actions, action)
}

// wake makes Decide be asked again after a time.
func (d *decider) wake(after time.Duration) {
	if d.decision.Wake == 0 || after < d.decision.Wake {
		d.decision.Wake = after
	}
}
