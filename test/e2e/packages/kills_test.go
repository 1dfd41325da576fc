package packages_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chandlery/chandlery/test/testenv"
)

const (
	// noticed is the time within which the API server uses a changed EndpointSlice.
	noticed = time.Second
	// span is the time in which no call may fail after the Service has moved.
	span = 5 * time.Second
)

// TestKilledSupervisors kills the supervisor that leads, then the one that does not. While clients call every 100 ms, none of
// their calls fails after the Service has moved. None fails after the killed supervisor has returned, either.
func TestKilledSupervisors(t *testing.T) {
	s := open(t)
	calls := startClients(t, s.lists(packageCount))
	calls.succeed(t)
	s.loses(calls, s.leader(""))
	s.loses(calls, s.standby())
}

// loses kills a supervisor, removes its endpoint from the Service, and starts it again.
func (s *scene) loses(calls *clients, p *pod) {
	s.T.Helper()
	led, begun := s.leader("") == p, time.Now()
	if err := p.process.Kill(); err != nil {
		s.T.Fatal(err)
	}
	testenv.Until(s.T, testenv.Patience, "a call of "+p.identity+" to fail", func(context.Context) string {
		return lackOf(len(calls.failed(begun)), 1)
	})
	moved := s.mark(p, false)
	if led {
		s.leader(p.identity)
	}
	s.serves(calls, moved, p.identity+" was killed")
	s.start(p)
	s.mark(p, true)
	s.serves(calls, moved, p.identity+" returned")
	s.T.Logf("%s (leader: %t): %d of %d calls failed until the Service moved, %s after the kill", p.identity, led, len(calls.failed(begun)), len(calls.since(begun)),
		moved.Sub(begun).Round(time.Millisecond))
}

// serves waits for a span of calls, and checks that no call has failed since the Service moved.
func (s *scene) serves(calls *clients, moved time.Time, after string) {
	s.T.Helper()
	from, now := moved.Add(noticed), time.Now()
	testenv.Until(s.T, testenv.Patience, "calls after "+after, func(context.Context) string {
		made := calls.since(now.Add(noticed))
		if len(made) == 0 || made[len(made)-1].begun.Sub(made[0].begun) < span {
			return fmt.Sprintf("%d calls", len(made))
		}
		return ""
	})
	if failed := calls.failed(from); len(failed) > 0 {
		s.T.Errorf("%s: %d of %d calls failed, the first %s after the Service had moved: %v",
			after, len(failed), len(calls.since(from)), failed[0].begun.Sub(moved), failed[0].err)
	}
}

func lackOf(n, want int) string {
	if n >= want {
		return ""
	}
	return fmt.Sprintf("%d of %d calls", n, want)
}
