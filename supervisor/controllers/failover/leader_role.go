package failover

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// Role determines the permitted actions of a process. A leader may be lost together with a
// replica. Until its Lease expires, no new leader exists, but marks are needed within seconds.
// Other processes therefore set marks, which are harmless if several processes set them.
type Role int

// Values of Role.
const (
	// Standby is the role of a standby beside a live leader. It does nothing.
	Standby Role = iota
	// LeaderlessStandby is the role of a standby whose leader has not renewed its Lease for a while. It marks
	// unreachable replicas.
	LeaderlessStandby
	// Leader permits all actions.
	Leader
)

// How often a standby checks its role while a replica does not answer. After maxUnreachable, all possible
// marks have been set, and standbys check less often.
const (
	checkInterval     = 500 * time.Millisecond
	maxUnreachable    = time.Minute
	slowCheckInterval = 10 * time.Second
)

// nextCheck returns when a standby checks again. unreachableSince is when the most recent unreachable replica
// stopped answering.
func nextCheck(now, unreachableSince time.Time) time.Duration {
	if now.Sub(unreachableSince) > maxUnreachable {
		return slowCheckInterval
	}
	return checkInterval
}

// election sends an event when the process becomes the leader.
type election chan event.GenericEvent

// Start sends the event. The manager calls it after winning the election.
func (e election) Start(ctx context.Context) error {
	select {
	case e <- event.GenericEvent{Object: catalogs.NewObject()}:
	case <-ctx.Done():
	}
	return nil
}

// NeedLeaderElection returns true, so that Start runs on the leader only.
func (election) NeedLeaderElection() bool { return true }
