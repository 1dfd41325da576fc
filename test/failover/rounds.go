package failover

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/chandlery/chandlery/test/caller"
)

// Kind is what a round stops.
type Kind string

// The kinds of rounds.
const (
	LostNode       Kind = "node lost"
	LostNodeLeader Kind = "node lost with the leader on it"
	KilledLeader   Kind = "leader killed"
	StoppedLeader  Kind = "leader stopped"
	KilledReplica  Kind = "replica killed"
	DeletedReplica Kind = "replica deleted"
)

// Kinds returns the kinds of a number of rounds. Every third round loses a node, because nodes
// matter most. Every kind occurs within the first six.
func Kinds(rounds int) []Kind {
	order := []Kind{LostNode, KilledLeader, DeletedReplica, LostNodeLeader, StoppedLeader, KilledReplica}
	kinds := make([]Kind, 0, rounds)
	for i := range rounds {
		kinds = append(kinds, order[i%len(order)])
	}
	return kinds
}

// Round is the result of a round.
type Round struct {
	Kind Kind
	Loss Loss
	// Whole is the time at which everything was as before, with lost nodes returned.
	Whole time.Time
	// Seen is what clients saw from the loss until Whole.
	Seen map[caller.Style]caller.Summary
}

// Go runs a round: it causes a loss, waits until the target and the supervisors have all replicas
// again, undoes the loss, and waits until everything is as before.
func (s *Scene) Go(ctx context.Context, kind Kind, target Target, calls *Calls) (Round, error) {
	round := Round{Kind: kind, Seen: map[caller.Style]caller.Summary{}}
	f := &faults{scene: s}
	var err error
	switch kind {
	case LostNode, LostNodeLeader:
		round.Loss, err = f.loseAndReturn(ctx, kind, target)
	case KilledLeader:
		round.Loss, err = f.killLeader(ctx)
	case StoppedLeader:
		round.Loss, err = f.stopLeader(ctx)
	case KilledReplica:
		round.Loss, err = f.killReplica(ctx, target)
	case DeletedReplica:
		round.Loss, err = f.deleteReplica(ctx, target)
	default:
		err = fmt.Errorf("there is no kind of round %q", kind)
	}
	if err != nil {
		return round, err
	}
	if err := s.Strong(ctx, target); err != nil {
		return round, err
	}
	if err := s.SupervisorsStrong(ctx); err != nil {
		return round, err
	}
	round.Whole = time.Now()
	for _, style := range caller.Styles() {
		round.Seen[style] = calls.Summary(style, round.Loss.Begun)
	}
	return round, nil
}

// loseAndReturn stops the node of a replica, with or without the leader on it, and starts it again
// when the catalog has all replicas elsewhere.
func (f *faults) loseAndReturn(ctx context.Context, kind Kind, target Target) (Loss, error) {
	if kind == LostNodeLeader {
		if err := f.leadBeside(ctx, target); err != nil {
			return Loss{}, err
		}
	}
	leader, err := f.leader(ctx)
	if err != nil {
		return Loss{}, err
	}
	node := leader.Spec.NodeName
	if kind == LostNode {
		if node, err = f.nodeOf(ctx, target, leader.Spec.NodeName); err != nil {
			return Loss{}, err
		}
	}
	loss, err := f.loseNode(ctx, node, target)
	if err != nil {
		return loss, err
	}
	return loss, f.scene.Bed.Return(ctx, f.number(node))
}

// leadBeside stops leaders until one leads on a node with a pod of the target.
func (f *faults) leadBeside(ctx context.Context, target Target) error {
	const tries = 6
	for range tries {
		leader, err := f.leader(ctx)
		if err != nil {
			return err
		}
		pods, err := f.scene.pods(ctx, target)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Spec.NodeName == leader.Spec.NodeName }) {
			return nil
		}
		if _, err := f.stopLeader(ctx); err != nil {
			return err
		}
		if err := f.scene.SupervisorsStrong(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("none of %d leaders is on a node with a replica of %s", tries, target)
}
