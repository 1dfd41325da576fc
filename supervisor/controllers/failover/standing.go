package failover

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// Standing is what a process may do about replicas. A leader may be lost together
// with a replica, and until its Lease has run out nobody would do what has to be
// done within seconds. So the others do the part of it that is harmless whoever
// does it, and however often: they mark.
type Standing int

// The standings.
const (
	// Waiting is beside a leader that gives signs of life: it does nothing.
	Waiting Standing = iota
	// Deputising is beside a leader that gives none: it marks replicas that do
	// not answer.
	Deputising
	// Leading does everything.
	Leading
)

// watchful is how often a process that does not lead looks whether it has to
// deputise, while there is a replica that does not answer.
const watchful = 500 * time.Millisecond

// After a while of the same silence the leader has done what could be done, or
// deputies have, and looking less often is enough.
const (
	accustomed = time.Minute
	relaxed    = 10 * time.Second
)

// watch is when a process that does not lead looks again, if the last replica that
// fell silent did so at a time.
func watch(now, silence time.Time) time.Duration {
	if now.Sub(silence) > accustomed {
		return relaxed
	}
	return watchful
}

// election tells when the process begins to lead. A manager runs it then.
type election chan event.GenericEvent

// Start tells it once.
func (e election) Start(ctx context.Context) error {
	select {
	case e <- event.GenericEvent{Object: catalogs.NewObject()}:
	case <-ctx.Done():
	}
	return nil
}

// NeedLeaderElection is true: that is what it is for.
func (election) NeedLeaderElection() bool { return true }
