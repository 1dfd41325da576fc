package failover

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

var now = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func ago(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }

// pod returns a replica that serves on a node, with changes applied.
func pod(name, node string, changes ...func(*Replica)) Replica {
	r := Replica{Name: name, UID: types.UID(name), Node: node, Phase: corev1.PodRunning, Ready: true, Health: replicas.Serving, Since: ago(600), Answered: true, Confirmed: true}
	for _, change := range changes {
		change(&r)
	}
	return r
}

func unreachable(r *Replica) { r.Health, r.Since = replicas.Unreachable, ago(1) }
func starting(r *Replica)    { unreachable(r); r.Answered = false }
func restarted(r *Replica)   { unreachable(r); r.Confirmed = false }
func notReady(r *Replica)    { r.Ready = false }
func terminating(r *Replica) { r.Terminating = true }
func unasked(r *Replica)     { r.Ready, r.Health, r.Phase = false, replicas.Unknown, corev1.PodPending }
func failed(r *Replica)      { r.Phase = corev1.PodFailed }

func marked(seconds int) func(*Replica) {
	return func(r *Replica) { r.Ready, r.Marked = false, ago(seconds) }
}

func disruptedFor(seconds int) func(*Replica) {
	return func(r *Replica) { r.Disrupted = ago(seconds) }
}

func shop(name string, pods ...Replica) Catalog {
	return Catalog{Key: types.NamespacedName{Namespace: "olm", Name: name}, Replicas: pods}
}

func node(ready corev1.ConditionStatus) Node { return Node{Zone: "/", Ready: ready, Since: ago(1)} }

func ready() Node { return node(corev1.ConditionTrue) }

func away() Node { return node(corev1.ConditionUnknown) }

func leased(n Node, seconds int) Node {
	n.Renewed = ago(seconds)
	return n
}

// done lists the decided actions, one per line.
func (d Decision) done() []string {
	var lines []string
	for _, a := range d.Actions {
		lines = append(lines, fmt.Sprintf("%s %s %s", a.Verb, a.Replica.Name, a.Reason))
	}
	return lines
}

func TestDecideOnPods(t *testing.T) {
	deleted := func(name string, seconds, refusals int) map[Target]Attempt {
		catalog := types.NamespacedName{Namespace: "olm", Name: "x"}
		return map[Target]Attempt{{UID: types.UID(name), Verb: Delete}: {Catalog: catalog, Last: ago(seconds), Refusals: refusals}}
	}
	unready := Node{Zone: "/", Ready: corev1.ConditionFalse, Since: ago(11)}
	three := map[string]Node{"a": ready(), "b": ready(), "c": ready()}
	with := func(name string, n Node) map[string]Node {
		nodes := map[string]Node{"a": ready(), "b": ready(), "c": ready()}
		nodes[name] = n
		return nodes
	}
	for _, tt := range []struct {
		reason       string
		catalogs     []Catalog
		nodes        map[string]Node
		marks        map[types.UID]Mark
		attempts     map[Target]Attempt
		want         []string
		held         map[Hold]int
		requeueAfter time.Duration
	}{
		{reason: "nothing there"},
		{reason: "all well", nodes: three, catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b"))}},
		{
			reason: "one is unreachable, the other answers", nodes: three,
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", unreachable))}, want: []string{"mark x2 ReplicaUnreachable"},
		},
		{
			reason: "it has not answered once since it is asked", nodes: three,
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", starting))},
		},
		{
			reason: "it became ready again and was not asked often enough since", nodes: three,
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", restarted))},
		},
		{
			reason: "two that are starting do not make us blind", nodes: three,
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", starting), pod("x3", "c", unreachable))}, want: []string{"mark x3 ReplicaUnreachable"},
		},
		{reason: "the only one is unreachable", nodes: three, catalogs: []Catalog{shop("x", pod("x1", "a", unreachable)), shop("y", pod("y1", "b"))}},
		{reason: "both are unreachable", nodes: three, catalogs: []Catalog{shop("x", pod("x1", "a", unreachable), pod("x2", "a", unreachable)), shop("y", pod("y1", "b"))}},
		{reason: "the other one is not ready", nodes: three, catalogs: []Catalog{shop("x", pod("x1", "a", notReady), pod("x2", "b", unreachable))}},
		{reason: "the other one is ending", nodes: three, catalogs: []Catalog{shop("x", pod("x1", "a", terminating), pod("x2", "b", unreachable))}},
		{reason: "is marked already", nodes: three, catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", unreachable, marked(1)))}},
		{reason: "was never ready", nodes: three, catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", unreachable, notReady))}},
		{
			reason: "the kubelet took the mark back", nodes: three, marks: map[types.UID]Mark{"x2": {UnreachableSince: ago(1), Count: 1, Last: ago(5)}},
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", unreachable))}, want: []string{"mark x2 ReplicaUnreachable"},
		},
		{
			reason: "the API may not show the mark yet", nodes: three, marks: map[types.UID]Mark{"x2": {UnreachableSince: ago(1), Count: 1, Last: ago(1)}},
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", unreachable))}, requeueAfter: time.Second,
		},
		{
			reason: "the kubelet resets the condition each time", nodes: with("b", leased(ready(), 3)), marks: map[types.UID]Mark{"x2": {UnreachableSince: ago(1), Count: maxMarks, Last: ago(5)}},
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", unreachable))}, requeueAfter: leaseStale - 3*time.Second,
		},
		{
			reason: "the kubelet reset the condition and is gone", nodes: with("b", leased(ready(), 16)), marks: map[types.UID]Mark{"x2": {UnreachableSince: ago(1), Count: maxMarks, Last: ago(5)}},
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", unreachable))}, want: []string{"mark x2 ReplicaUnreachable"},
		},
		{
			reason: "the kubelet reset the condition in an earlier outage", nodes: three, marks: map[types.UID]Mark{"x2": {UnreachableSince: ago(100), Count: maxMarks, Last: ago(90)}},
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", unreachable))}, want: []string{"mark x2 ReplicaUnreachable"},
		},
		{
			reason: "only what is on one node answers: it may be ours", nodes: three,
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", unreachable)), shop("y", pod("y1", "a"), pod("y2", "c", unreachable))},
			held:     map[Hold]int{CutOff: 2}, requeueAfter: 5 * time.Second,
		},
		{
			reason: "what is on a third node answers as well: it is not ours", nodes: with("d", ready()),
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", unreachable)), shop("y", pod("y1", "d"), pod("y2", "c", unreachable))},
			want:     []string{"mark x2 ReplicaUnreachable", "mark y2 ReplicaUnreachable"},
		},
		{
			reason: "only what is on one node answers, but the kubelets are gone too",
			nodes:  map[string]Node{"a": ready(), "b": leased(ready(), 20), "c": leased(ready(), 14)},
			catalogs: []Catalog{
				shop("x", pod("x1", "a"), pod("x2", "b", unreachable)), shop("y", pod("y1", "a"), pod("y2", "c", unreachable)),
			},
			want: []string{"mark x2 ReplicaUnreachable"}, held: map[Hold]int{CutOff: 1}, requeueAfter: time.Second,
		},
		{
			reason: "only what is on one node answers, and one of the others is known to be lost", nodes: with("c", away()),
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", unreachable)), shop("y", pod("y1", "a"), pod("y2", "c", unreachable))},
			want:     []string{"delete y2 NodeNotReady", "mark x2 ReplicaUnreachable"},
		},
		{
			reason: "the node is not ready", nodes: with("b", away()),
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", unreachable, marked(40)))}, want: []string{"delete x2 NodeNotReady"},
		},
		{
			reason: "the node is not ready, and the only replica was there", nodes: with("b", away()),
			catalogs: []Catalog{shop("x", pod("x2", "b", unreachable, notReady))}, want: []string{"delete x2 NodeNotReady"},
		},
		{
			reason: "the node is not ready, and its pod hangs in Terminating", nodes: with("b", away()),
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", unreachable, terminating))}, want: []string{"delete x2 NodeNotReady"},
		},
		{
			reason: "the kubelet says that its node is not ready, and the replica answers", nodes: with("b", node(corev1.ConditionFalse)),
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", notReady))}, requeueAfter: notReadyGrace - time.Second,
		},
		{
			reason: "the kubelet goes on saying so", nodes: with("b", Node{Zone: "/", Ready: corev1.ConditionFalse, Since: ago(11)}),
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", notReady))}, want: []string{"delete x2 NodeNotReady"},
		},
		{
			reason: "the kubelet says so, and the replica does not answer", nodes: with("b", node(corev1.ConditionFalse)),
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", unreachable))}, want: []string{"delete x2 NodeNotReady"},
		},
		{
			reason: "no node is ready", nodes: map[string]Node{"a": away(), "b": away()},
			catalogs: []Catalog{shop("x", pod("x1", "a", notReady), pod("x2", "b", notReady))}, held: map[Hold]int{NoNodeReady: 2},
		},
		{
			reason: "two of three nodes are lost", nodes: map[string]Node{"a": ready(), "b": away(), "c": away()},
			catalogs: []Catalog{shop("x", pod("x1", "b", unreachable, notReady), pod("x2", "c", unreachable, notReady)), shop("y", pod("y1", "a"), pod("y2", "b", unreachable, notReady))},
			want:     []string{"delete x1 NodeNotReady", "delete x2 NodeNotReady", "delete y2 NodeNotReady"},
		},
		{
			reason: "most of a zone is lost: one at a time", nodes: map[string]Node{"a": ready(), "b": away(), "c": away(), "d": away()},
			catalogs: []Catalog{shop("x", pod("x1", "b", unreachable, notReady), pod("x2", "c", unreachable, notReady))},
			want:     []string{"delete x1 NodeNotReady"}, held: map[Hold]int{ZoneDisrupted: 1}, requeueAfter: time.Second,
		},
		{
			reason: "a zone is lost as a whole", nodes: map[string]Node{"a": {Zone: "z", Ready: corev1.ConditionTrue}, "b": away(), "c": away(), "d": away()},
			catalogs: []Catalog{shop("x", pod("x1", "b", unreachable, notReady), pod("x2", "c", unreachable, notReady))},
			want:     []string{"delete x1 NodeNotReady", "delete x2 NodeNotReady"},
		},
		{
			reason: "the node does not exist", nodes: with("d", Node{Gone: true}),
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "d", unreachable))}, want: []string{"delete x2 NodeGone"},
		},
		{reason: "the node is not known", nodes: three, catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "new", notReady))}},
		{
			reason: "the pod has failed", nodes: three,
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", failed, notReady))}, want: []string{"delete x2 PodFailed"},
		},
		{reason: "the pod is being drained", nodes: three, catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", terminating, disruptedFor(20)))}},
		{
			reason: "the pod is about to be drained", nodes: three,
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", disruptedFor(4)))}, requeueAfter: 6 * time.Second,
		},
		{
			reason: "the pod was to be deleted and was not", nodes: three,
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", disruptedFor(11)))}, want: []string{"delete x2 PodDisrupted"},
		},
		{
			reason: "the replica that is left fails itself: it is replaced, the unreachable one stays", nodes: three,
			catalogs: []Catalog{shop("x", pod("x1", "a", failed), pod("x2", "b", unreachable))}, want: []string{"delete x1 PodFailed"},
		},
		{
			reason: "a marked replica answers again: the kubelet's turn", nodes: three,
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", marked(5)))}, requeueAfter: unmarkAfter - 5*time.Second,
		},
		{
			reason: "the kubelet does not take it", nodes: three,
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", marked(30)))}, want: []string{"unmark x2 ReplicaAnswers"},
		},
		{reason: "marked and still unreachable", nodes: three, catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", unreachable, marked(30)))}},
		{
			reason: "those go first whose catalog has nothing left", nodes: with("b", away()),
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", unreachable)), shop("y", pod("y1", "b", unreachable))},
			want:     []string{"delete y1 NodeNotReady", "delete x2 NodeNotReady"},
		},
		{
			reason: "both nodes say that they are not ready, and the replicas answer: one at a time", nodes: map[string]Node{"a": unready, "b": unready, "c": ready()},
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b"))}, want: []string{"delete x1 NodeNotReady"}, held: map[Hold]int{LastAnswering: 1},
		},
		{
			reason: "the kubelets are cut off: the one that the Service does not lead to goes first", nodes: map[string]Node{"a": away(), "b": away(), "c": ready()},
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", notReady))}, want: []string{"delete x2 NodeNotReady"}, held: map[Hold]int{LastAnswering: 1},
		},
		{
			reason: "the replacement may not be seen yet", nodes: map[string]Node{"a": away(), "b": away(), "c": ready()}, attempts: deleted("x0", 4, 0),
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b"))}, held: map[Hold]int{LastAnswering: 2}, requeueAfter: 6 * time.Second,
		},
		{
			reason: "the replacement does not answer yet", nodes: map[string]Node{"a": away(), "b": away(), "c": ready()},
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b"), pod("x3", "c", unasked))}, held: map[Hold]int{LastAnswering: 2},
		},
		{
			reason: "the replacement answers", nodes: map[string]Node{"a": away(), "b": away(), "c": ready()},
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b"), pod("x3", "c"))}, want: []string{"delete x1 NodeNotReady", "delete x2 NodeNotReady"},
		},
		{
			reason: "the only replica answers, and its kubelet says that it is ready", nodes: with("b", unready),
			catalogs: []Catalog{shop("x", pod("x1", "b"))}, held: map[Hold]int{LastAnswering: 1},
		},
		{
			reason: "the only replica answers us, and the Service leads nobody there", nodes: with("b", away()),
			catalogs: []Catalog{shop("x", pod("x1", "b", notReady))}, want: []string{"delete x1 NodeNotReady"},
		},
		{
			reason: "the Service leads nobody to the one that answers, and another is on its way", nodes: with("b", away()),
			catalogs: []Catalog{shop("x", pod("x1", "b", notReady), pod("x2", "c", unasked))}, held: map[Hold]int{LastAnswering: 1},
		},
		{
			reason: "one is unreachable and goes at once, the other answers and stays", nodes: map[string]Node{"a": away(), "b": away(), "c": ready()},
			catalogs: []Catalog{shop("x", pod("x1", "a", unreachable, notReady), pod("x2", "b", notReady))}, want: []string{"delete x1 NodeNotReady"}, held: map[Hold]int{LastAnswering: 1},
		},
		{
			reason: "both were to be deleted and were not: one at a time", nodes: three,
			catalogs: []Catalog{shop("x", pod("x1", "a", disruptedFor(11)), pod("x2", "b", disruptedFor(11)))},
			want:     []string{"delete x1 PodDisrupted"}, held: map[Hold]int{LastAnswering: 1},
		},
		{
			reason: "what is kept because it answers lets others be marked", nodes: with("a", unready),
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", unreachable))}, want: []string{"mark x2 ReplicaUnreachable"}, held: map[Hold]int{LastAnswering: 1},
		},
		{
			reason: "we have only begun to ask", nodes: with("b", away()),
			catalogs: []Catalog{shop("x", pod("x1", "b", func(r *Replica) { r.Health, r.Since = replicas.Unknown, ago(1) }))}, requeueAfter: firstProbes - time.Second,
		},
		{
			reason: "the pod was deleted and has a finalizer", nodes: with("b", away()), attempts: deleted("x2", 60, 0),
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", unreachable, terminating))}, held: map[Hold]int{Backoff: 1}, requeueAfter: longestPause - time.Minute,
		},
		{
			reason: "the deletion was refused", nodes: with("b", away()), attempts: deleted("x2", 3, 2),
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", unreachable))}, held: map[Hold]int{Backoff: 1}, requeueAfter: time.Second,
		},
		{
			reason: "the deletion was refused a while ago: it goes last", nodes: with("b", away()), attempts: deleted("x2", 5, 2),
			catalogs: []Catalog{shop("x", pod("x2", "b", unreachable)), shop("y", pod("y1", "a"), pod("y2", "b", unreachable))},
			want:     []string{"delete y2 NodeNotReady", "delete x2 NodeNotReady"},
		},
		{
			reason: "the mark was refused", nodes: three, attempts: map[Target]Attempt{{UID: "x2", Verb: MarkNotReady}: {Last: ago(1), Refusals: 1}},
			catalogs: []Catalog{shop("x", pod("x1", "a"), pod("x2", "b", unreachable))}, held: map[Hold]int{Backoff: 1}, requeueAfter: time.Second,
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			got := Decide(Input{Now: now, Role: Leader, Catalogs: tt.catalogs, Nodes: tt.nodes, Marks: tt.marks, Attempts: tt.attempts, Limits: Limits{Rate: 10, Burst: 5}})
			if diff := cmp.Diff(tt.want, got.done()); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			if tt.held == nil {
				tt.held = map[Hold]int{}
			}
			if diff := cmp.Diff(tt.held, got.Held); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
			if got.RequeueAfter != tt.requeueAfter {
				t.Errorf("requeues after %s, want %s", got.RequeueAfter, tt.requeueAfter)
			}
		})
	}
}

func TestDecideIsBoundedInTime(t *testing.T) {
	o := Input{Now: now, Role: Leader, Nodes: map[string]Node{"a": ready(), "b": away()}, Limits: Limits{Rate: 10, Burst: 5}}
	var pods []Replica
	for i := range 20 {
		pods = append(pods, pod(fmt.Sprintf("x%02d", i), "b", unreachable))
	}
	o.Catalogs = []Catalog{shop("x", pods...)}
	first := Decide(o)
	if len(first.Actions) != 5 || first.Held[RateLimited] != 15 || first.RequeueAfter != 100*time.Millisecond {
		t.Errorf("%d actions, held %v, requeues after %s", len(first.Actions), first.Held, first.RequeueAfter)
	}
	o.Budget, o.Now = first.Budget, o.Now.Add(250*time.Millisecond)
	if second := Decide(o); len(second.Actions) != 2 || second.RequeueAfter != 50*time.Millisecond {
		t.Errorf("%d actions, requeues after %s", len(second.Actions), second.RequeueAfter)
	}
	o.Now = o.Now.Add(time.Hour)
	if third := Decide(o); len(third.Actions) != 5 {
		t.Errorf("%d actions after a rest", len(third.Actions))
	}
}

func TestPauses(t *testing.T) {
	for _, tt := range []struct {
		refusals int
		want     time.Duration
	}{
		{0, longestPause}, {1, firstPause}, {2, 2 * firstPause}, {4, 8 * firstPause}, {1000, longestPause},
	} {
		if got := (Attempt{Refusals: tt.refusals}).pause(); got != tt.want {
			t.Errorf("%d refusals: %s, want %s", tt.refusals, got, tt.want)
		}
	}
}

// TestClocksOfNodes checks the Lease of a node whose clock is wrong.
func TestClocksOfNodes(t *testing.T) {
	for _, skew := range []time.Duration{-time.Hour, -20 * time.Second, 0, time.Hour} {
		seen := leaseTimes{}
		renewed := now.Add(skew)
		for second := range 60 {
			at := now.Add(time.Duration(second) * time.Second)
			if second%10 == 0 && second <= 30 {
				renewed = at.Add(skew) // the last renewal is after half a minute
			}
			n := Node{Renewed: seen.record("a", renewed, at)}
			if want := second > 45; n.stale(at) != want {
				t.Errorf("the clock is off by %s, second %d: stale %v", skew, second, !want)
			}
		}
	}
}

// TestOneRefusedDeletionHoldsUpNoOther has many pods on an unreachable node. The API rejects the
// deletion of one of them.
func TestOneRefusedDeletionHoldsUpNoOther(t *testing.T) {
	o := Input{
		Now: now, Role: Leader, Limits: Limits{Rate: 10, Burst: 50}, Attempts: map[Target]Attempt{},
		Nodes: map[string]Node{"a": ready(), "b": away()},
	}
	for i := range 200 {
		name := fmt.Sprintf("p%03d", i)
		o.Catalogs = append(o.Catalogs, shop(name, pod(name, "b", unreachable, notReady)))
	}
	tries := 0
	for o.Now.Before(now.Add(time.Minute)) {
		d := Decide(o)
		gone := map[types.NamespacedName]bool{}
		for _, a := range d.Actions {
			if a.Replica.Name != "p000" {
				gone[a.Catalog] = true
				continue
			}
			tries++
			o.Attempts[a.target()] = Attempt{Catalog: a.Catalog, Last: o.Now, Refusals: tries}
		}
		o.Catalogs = slices.DeleteFunc(o.Catalogs, func(c Catalog) bool { return gone[c.Key] })
		o.Budget = d.Budget
		o.Now = o.Now.Add(max(d.RequeueAfter, 5*time.Millisecond))
		if len(o.Catalogs) == 1 && o.Now.After(now.Add(20*time.Second)) {
			break
		}
	}
	if len(o.Catalogs) != 1 || tries > 5 {
		t.Errorf("%d pods are left after %s, one of them was tried %d times", len(o.Catalogs), o.Now.Sub(now), tries)
	}
}

// TestNamespacesTakeTurns has more pods to delete in one namespace than the rate allows in minutes. A pod of another
// namespace is deleted with the second token at the latest.
func TestNamespacesTakeTurns(t *testing.T) {
	o := Input{Now: now, Role: Leader, Limits: Limits{Rate: 1, Burst: 1}, Nodes: map[string]Node{"a": ready(), "b": {Gone: true}}}
	for i := range 300 {
		c := shop(fmt.Sprintf("p%03d", i), pod(fmt.Sprintf("p%03d", i), "b", unreachable, notReady))
		c.Key.Namespace = "tenant"
		o.Catalogs = append(o.Catalogs, c)
	}
	for range 10 {
		o.Budget, o.Now = Decide(o).Budget, o.Now.Add(time.Second)
	}
	o.Catalogs = append(o.Catalogs, shop("shop", pod("serving", "a"), pod("lost", "b", unreachable)))
	var deleted []string
	for range 2 {
		d := Decide(o)
		for _, a := range d.Actions {
			deleted = append(deleted, a.Catalog.Namespace)
		}
		o.Budget, o.Now = d.Budget, o.Now.Add(time.Second)
	}
	if !slices.Contains(deleted, "olm") || len(deleted) != 2 {
		t.Errorf("deleted pods in %v, want one in olm", deleted)
	}
}
