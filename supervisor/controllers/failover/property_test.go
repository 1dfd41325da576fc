package failover

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

// observations draws an observation.
func observations(t *rapid.T) Input {
	past := rapid.Custom(func(t *rapid.T) time.Time { return ago(rapid.IntRange(0, 60).Draw(t, "seconds")) })
	maybe := rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "never") {
			return time.Time{}
		}
		return past.Draw(t, "when")
	})
	o := Input{
		Now: now, Role: Leader, Nodes: map[string]Node{}, Marks: map[types.UID]Mark{}, Attempts: map[Target]Attempt{},
		Limits: Limits{Rate: rapid.Float64Range(0.1, 20).Draw(t, "rate"), Burst: rapid.IntRange(1, 8).Draw(t, "burst")},
	}
	names := []string{"", "unknown"}
	for i := range rapid.IntRange(0, 6).Draw(t, "nodes") {
		name := fmt.Sprintf("node-%d", i)
		names = append(names, name)
		o.Nodes[name] = Node{
			Zone:  rapid.SampledFrom([]string{"p", "q"}).Draw(t, "zone"),
			Ready: rapid.SampledFrom([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}).Draw(t, "ready"),
			Since: past.Draw(t, "since"), Renewed: maybe.Draw(t, "renewed"), Gone: rapid.IntRange(0, 9).Draw(t, "gone") == 0,
		}
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "catalogs") {
		c := shop(fmt.Sprintf("catalog-%d", i))
		for j := range rapid.IntRange(0, 4).Draw(t, "replicas") {
			r := pod(fmt.Sprintf("pod-%d-%d", i, j), rapid.SampledFrom(names).Draw(t, "node"))
			r.Ready = rapid.Bool().Draw(t, "podReady")
			r.Terminating = rapid.IntRange(0, 4).Draw(t, "terminating") == 0
			r.Phase = rapid.SampledFrom([]corev1.PodPhase{corev1.PodRunning, corev1.PodRunning, corev1.PodPending, corev1.PodFailed}).Draw(t, "phase")
			r.Health = rapid.SampledFrom(replicas.Healths()).Draw(t, "health")
			r.Answered, r.Confirmed = rapid.Bool().Draw(t, "answered"), rapid.Bool().Draw(t, "confirmed")
			r.Since, r.Disrupted = past.Draw(t, "healthSince"), maybe.Draw(t, "disrupted")
			if !r.Ready {
				r.Marked = maybe.Draw(t, "marked")
			}
			if rapid.Bool().Draw(t, "wasMarked") {
				o.Marks[r.UID] = Mark{UnreachableSince: r.Since, Count: rapid.IntRange(1, 4).Draw(t, "count"), Last: past.Draw(t, "last")}
			}
			c.Replicas = append(c.Replicas, r)
		}
		o.Catalogs = append(o.Catalogs, c)
	}
	return o
}

// decided returns an observation after a decision.
func decided(o Input, d Decision) Input {
	done := map[types.UID]Verb{}
	for _, a := range d.Actions {
		done[a.Replica.UID] = a.Verb
	}
	next := o
	next.Budget, next.Catalogs, next.Attempts = d.Budget, nil, maps.Clone(o.Attempts)
	for _, a := range d.Actions {
		if a.Verb == Delete {
			next.Attempts[a.target()] = Attempt{Catalog: a.Catalog, Last: o.Now}
		}
	}
	for _, c := range o.Catalogs {
		c.Replicas = slices.DeleteFunc(slices.Clone(c.Replicas), func(r Replica) bool { return done[r.UID] == Delete })
		for i, r := range c.Replicas {
			switch done[r.UID] {
			case MarkNotReady:
				c.Replicas[i].Ready, c.Replicas[i].Marked = false, o.Now
			case MarkReady:
				c.Replicas[i].Ready, c.Replicas[i].Marked = true, time.Time{}
			case Delete:
			}
		}
		next.Catalogs = append(next.Catalogs, c)
	}
	return next
}

func answering(c Catalog) int {
	n := 0
	for _, r := range c.Replicas {
		if r.answers() {
			n++
		}
	}
	return n
}

func TestDecideProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := observations(t)
		d := Decide(o)
		if diff := cmp.Diff(d, Decide(o)); diff != "" {
			t.Fatalf("the same observation gives another decision:\n%s", diff)
		}
		if limit := 2*o.Limits.Burst + 1; len(d.Actions) > limit {
			t.Fatalf("%d actions at once, the limit is %d", len(d.Actions), limit)
		}
		after := decided(o, d)
		for i, c := range o.Catalogs {
			marks := 0
			for _, a := range d.Actions {
				if a.Catalog != c.Key {
					continue
				}
				if a.Verb == MarkNotReady {
					marks++
					if !a.Replica.unreachable() {
						t.Fatalf("marked a replica that is not unreachable: %+v", a)
					}
				}
				if a.Verb == Delete && a.Reason == NodeNotReady && o.Nodes[a.Replica.Node].Ready == corev1.ConditionTrue {
					t.Fatalf("deleted a pod on a node that is ready: %+v", a)
				}
			}
			useful := slices.ContainsFunc(c.Replicas, func(r Replica) bool { return r.answers() && r.Phase != corev1.PodFailed })
			if useful && !slices.ContainsFunc(after.Catalogs[i].Replicas, func(r Replica) bool { return r.Health == replicas.Serving }) {
				t.Fatalf("nothing of %s answers any more:\n%+v\n%+v", c.Key, c.Replicas, d)
			}
			if marks > 0 && answering(after.Catalogs[i]) == 0 {
				t.Fatalf("marked replicas of %s though none is left that answers", c.Key)
			}
		}
		// Executed actions are not decided again. Only held actions may follow.
		for _, a := range Decide(after).Actions {
			for _, b := range d.Actions {
				if a.Replica.UID == b.Replica.UID && a.Verb == b.Verb {
					t.Fatalf("decided again: %+v", a)
				}
			}
		}
	})
}

// TestDecideComesToAnEnd advances the time until no action is left.
func TestDecideComesToAnEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := observations(t)
		total := 0
		for range 200 {
			d := Decide(o)
			total += len(d.Actions)
			o = decided(o, d)
			if d.RequeueAfter == 0 && len(d.Actions) == 0 {
				break
			}
			// The effect of the actions is visible a moment later.
			o.Now = o.Now.Add(max(d.RequeueAfter, time.Second))
		}
		d := Decide(o)
		if len(d.Actions) > 0 || (d.RequeueAfter > 0 && d.Held[CutOff] == 0) {
			t.Fatalf("after %d actions there is no end: %+v", total, d)
		}
	})
}
