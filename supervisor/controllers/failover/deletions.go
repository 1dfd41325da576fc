package failover

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// disruptionTime is how long an announced deletion of a pod may take before the controller
	// deletes the pod itself.
	disruptionTime = 10 * time.Second
	// slowdown is the factor by which deletions are slower in a disrupted zone.
	slowdown = 10
	// firstProbes is how long the first probes of a replica take.
	firstProbes = 5 * time.Second
	// replacementTime is how long the replacement of a deleted pod may take to appear.
	replacementTime = 10 * time.Second
)

// deletions decides on the deletion of pods that will not serve again.
type deletions struct {
	*decider

	// toDelete holds the UIDs of the pods that are, or should be, deleted.
	toDelete map[types.UID]bool
}

// candidates returns the deletions of pods that will not serve again.
func (d *deletions) candidates() []candidate {
	var found []candidate
	for _, c := range d.Catalogs {
		found = append(found, d.candidatesOf(c)...)
	}
	return found
}

// choose decides on the candidates.
func (d *deletions) choose(candidates []candidate) {
	d.decision.Budget.sort(candidates)
	zones := zoneStates(d.Nodes)
	for _, c := range candidates {
		switch {
		case c.Reason == NodeNotReady && zones[d.Nodes[c.Replica.Node].Zone]:
			d.addLimited(c.Action, &d.decision.Budget.Slow, d.Limits.slowed(), ZoneDisrupted)
		default:
			d.addLimited(c.Action, &d.decision.Budget.Deletions, d.Limits, RateLimited)
		}
	}
}

// candidatesOf returns the deletions that a catalog needs and can tolerate.
func (d *deletions) candidatesOf(c Catalog) []candidate {
	remaining := 0
	unusablePods := map[types.UID]Action{}
	for _, r := range c.Replicas {
		if r.answers() {
			remaining++
		}
		if reason, message := d.deletionReason(r); reason != "" {
			unusablePods[r.UID] = Action{Verb: Delete, Reason: reason, Catalog: c.Key, Replica: r, Message: message}
		}
	}
	kept := d.kept(c, unusablePods)
	nodeReady := slices.ContainsFunc(slices.Collect(maps.Values(d.Nodes)), func(n Node) bool { return n.Ready == corev1.ConditionTrue })
	var found []candidate
	for _, r := range c.Replicas {
		action, unusable := unusablePods[r.UID]
		if !unusable {
			continue
		}
		d.toDelete[r.UID] = !kept[r.UID]
		switch {
		case !nodeReady:
			d.decision.Held[NoNodeReady]++
		case d.pausing(action):
		case kept[r.UID]:
			d.decision.Held[LastAnswering]++
		default:
			found = append(found, candidate{Action: action, remaining: remaining, refusals: d.Attempts[action.target()].Refusals})
		}
	}
	return found
}

// kept returns the replicas that would be deleted but must stay because they still answer. If no
// healthy replica answers, one of them is deleted, so that another pod replaces it. The next one
// follows when the replacement answers. The last one is deleted only if no other pod is starting
// and it is not ready. Clients of the Service cannot reach it then.
func (d *deletions) kept(c Catalog, unusablePods map[types.UID]Action) map[types.UID]bool {
	var answersProbes []Replica
	replacing := d.replaced(c.Key)
	for _, r := range c.Replicas {
		_, unusable := unusablePods[r.UID]
		switch {
		case !unusable && r.answers() && d.Nodes[r.Node].Ready == corev1.ConditionTrue:
			return nil
		case unusable && r.answersProbes():
			answersProbes = append(answersProbes, r)
		case !r.Terminating:
			replacing = true
		}
	}
	slices.SortStableFunc(answersProbes, func(a, b Replica) int { return cmp.Compare(a.rank(), b.rank()) })
	kept := map[types.UID]bool{}
	for i, r := range answersProbes {
		first := i == 0 && (len(answersProbes) > 1 || !r.Ready)
		kept[r.UID] = replacing || !first
	}
	return kept
}

// replaced reports whether a replica of a catalog was deleted so recently that its replacement may
// not be visible yet.
func (d *deletions) replaced(catalog types.NamespacedName) bool {
	recent := false
	for target, attempt := range d.Attempts {
		if target.Verb == Delete && attempt.Catalog == catalog && attempt.Refusals == 0 && !d.overdue(attempt.Last, replacementTime) {
			recent = true
		}
	}
	return recent
}

// deletionReason returns why a pod will not serve again; empty if it may.
func (d *deletions) deletionReason(r Replica) (Reason, string) {
	if reason, message := d.nodeProblem(r); reason != "" {
		return reason, message
	}
	switch {
	case r.Terminating:
		// On a healthy node, a terminating pod has its grace period.
		return "", ""
	case r.Phase == corev1.PodFailed || r.Phase == corev1.PodUnknown:
		return Failed, fmt.Sprintf("the pod's phase is %s", r.Phase)
	case !r.Disrupted.IsZero() && d.overdue(r.Disrupted, disruptionTime):
		return Disrupted, "the announced deletion of the pod did not happen (its condition DisruptionTarget is True)"
	default:
		return "", ""
	}
}
