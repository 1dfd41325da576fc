package availability

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
)

const (
	// firstPause is the pause after the first failed attempt; each further one is twice as long.
	firstPause = 100 * time.Millisecond
	// MaxPause is the longest pause between two attempts during the start.
	MaxPause = 2 * time.Second
	// outageTimeout is how long an outage lasts after the last failed request, unless a request succeeds. Clients wait
	// up to a minute between attempts.
	outageTimeout = 2 * time.Minute
)

// Config holds the dependencies of a Monitor.
type Config struct {
	// Server is the address of the API server, for messages.
	Server string
	// Log receives a line for each cause.
	Log logr.Logger
	// Clock returns the time.
	Clock clock.Clock
}

// Monitor waits for an API server that cannot be reached, and records the cause. It is safe for concurrent use.
type Monitor struct {
	Config

	mu      sync.Mutex
	history history
}

// NewMonitor returns a Monitor that has seen no outage.
func NewMonitor(c Config) *Monitor {
	return &Monitor{Config: c, history: history{last: c.Clock.Now()}}
}

// Retry calls f until the API server has answered it, with pauses of at most maxPause, and returns its error. It
// returns the last error as soon as ctx has ended. The log names the operation that waits.
func (m *Monitor) Retry(ctx context.Context, what string, maxPause time.Duration, f func() error) error {
	for pause := firstPause; ; pause *= 2 {
		err := f()
		cause := CauseOf(err)
		if cause == "" {
			if isAnswer(err) {
				m.recordAnswer()
			}
			return err
		}
		if ctx.Err() != nil {
			return err
		}
		m.recordFailure(what, cause, err)
		pause = min(pause, maxPause)
		select {
		case <-m.Clock.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("waiting for the API server at %s, as %s: %w: %w", m.Server, cause, context.Cause(ctx), err)
		}
	}
}

// isAnswer reports whether an error, or none, is the answer of an API server.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return err == nil || errors.As(err, &status)
}

// recordFailure records a request that failed because of an outage. It logs a new cause at once, and the same one again
// at growing intervals.
func (m *Monitor) recordFailure(what, cause string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.Clock.Now()
	if m.history.fail(cause, now) {
		m.Log.Info("Waiting for the API server", "server", m.Server, "cause", cause, "for", what,
			"waited", now.Sub(m.history.started).Round(time.Second).String(), "error", err.Error())
	}
}

// recordAnswer records a request that the API server answered.
func (m *Monitor) recordAnswer() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if waited, logged := m.history.answer(m.Clock.Now()); logged {
		m.Log.Info("The API server answers", "server", m.Server, "waited", waited.Round(time.Second).String())
	}
}

// Err returns why the API server cannot be used now; nil if it can.
func (m *Monitor) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cause := m.history.cause(m.Clock.Now()); cause != "" {
		return fmt.Errorf("waiting for the API server at %s: %s", m.Server, cause)
	}
	return nil
}

// SinceFailure returns the time since the last request that failed because of an outage, or since the start.
func (m *Monitor) SinceFailure() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.Clock.Since(m.history.last)
}

// Observe wraps a transport, so that requests that fail because of an outage are recorded until ctx ends. They
// are not repeated.
func (m *Monitor) Observe(ctx context.Context, what string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(req)
			if ctx.Err() != nil || req.Context().Err() != nil {
				return response, err
			}
			cause := CauseOf(err)
			if err == nil && !isDiscovery(req.URL.Path) {
				cause = CauseOfStatus(response.StatusCode)
				if cause != "" && req.Method != http.MethodGet {
					// The error may come from an admission webhook.
					return response, nil
				}
			}
			if cause != "" {
				m.recordFailure(what, cause, fmt.Errorf("%s %s: %s", req.Method, req.URL.Path, cause))
			} else if err == nil {
				m.recordAnswer()
			}
			return response, err
		})
	}
}

// isDiscovery reports whether a path belongs to discovery. A failure there may come from another server, behind
// an APIService.
func isDiscovery(path string) bool {
	_, group, found := strings.Cut(path, "/apis/")
	return found && strings.Count(strings.Trim(group, "/"), "/") <= 1
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }
