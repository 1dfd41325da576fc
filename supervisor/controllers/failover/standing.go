package failover

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// Standing determines the permitted actions of a process. A leader may be lost together with a
// replica. Until its Lease expires, no new leader exists, but marks are needed within seconds.
// Other processes therefore set marks, which are harmless if several processes set them.
type Standing int

// Values of Standing.
const (
	// Waiting is the standing of a standby beside a live leader. It does nothing.
	Waiting Standing = iota
	// Deputising is the standing of a standby whose leader shows no signs of life. It marks
	// unreachable replicas.
	Deputising
	// Leading permits all actions.
	Leading
)

// watchful is how often a standby checks its standing while a replica does not answer.
const watchful = 500 * time.Millisecond

// Once a silence lasts longer than accustomed, all possible marks have been set, and standbys check
// less often.
const (
	accustomed = time.Minute
	relaxed    = 10 * time.Second
)

// watch returns when a standby checks again. silence is when the most recent unreachable replica
// stopped answering.
func watch(now, silence time.Time) time.Duration {
	if now.Sub(silence) > accustomed {
		return relaxed
	}
	return watchful
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
